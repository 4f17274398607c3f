#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/named_state.hpp"

namespace quantrain::quant {

/// How an observer groups the elements of a tensor: one range for the whole tensor, or one for each
/// index along an axis.
struct ObserverShape {
  int axis = -1;          ///< < 0: the whole tensor
  int64_t channels = 1;   ///< extent along the axis; 1 if there is none
  std::string name = {};  ///< the layer's name, for errors
};

/// Watches batches of one tensor and chooses the range of real values that the codes cover, per
/// tensor or for each index along an axis.   docs/quantization.md (14)
/// To write an observer, derive from this class (or from RangeObserver if a running [min, max] is
/// enough). Register state with add_state(), update it in accumulate(), and compute ranges from it
/// in choose_ranges(). Not thread-safe.
class Observer {
 public:
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// The kind's name in errors and configurations, such as "min_max".
  virtual std::string_view kind() const = 0;

  /// Adds one batch.
  /// Throws: DataError naming observer and layer if x is empty or holds a NaN or an infinity, or if
  /// the state (perhaps loaded from a file) is invalid; ShapeError if x has no such axis or a
  /// different number of channels. On an error, nothing changes.
  void observe(const Tensor& x);
  /// The same for a batch of which only the smallest and largest value of each channel are known.
  /// Throws: as above; DataError if samples is negative or too large to count; QuantError if
  /// needs_values().
  void observe_range(std::span<const Range> extremes, int64_t samples);
  /// Whether the observer needs all values of a batch, not only their extremes.
  virtual bool needs_values() const { return true; }

  /// For each channel, the range that codes of this type cover.
  /// Throws: QuantError if nothing was observed, the type is invalid, or choose_ranges() returns a
  /// wrong number of ranges; DataError if the state is invalid.
  std::vector<Range> ranges(const QType& type, QScheme scheme) const;
  /// choose_params() for each range.   docs/quantization.md (2)
  /// Throws: as ranges(); DataError if a range is not finite or not in order.
  QParams params(const QType& type, QScheme scheme) const;
  /// The parameters for the values of x alone. The state does not change.
  /// Throws: as observe() and params().
  QParams params_of(const Tensor& x, const QType& type, QScheme scheme);

  /// Joins what the shards of one batch left, as if the batch had been observed whole, except that
  /// numbers such as a percentile or a mean are those of each shard. The state holds the values
  /// from before the batch. after: state() after each shard, each of which began with these values.
  /// Throws: QuantError if the kind overrides no join_shard(); DataError if a state is invalid. On an
  /// error, nothing changes.   docs/quantization.md (14)
  void join_shards(const std::vector<std::vector<NamedState>>& after);

  /// count() is the number of batches observed. samples() is the sum of the batches' first extents
  /// (a scalar counts as one sample).
  int64_t count() const { return counts_.values()[0]; }
  int64_t samples() const { return counts_.values()[1]; }
  /// Forgets all observed values: sets every state to 0.
  void reset();

  int axis() const { return shape_.axis; }
  int64_t channels() const { return shape_.channels; }
  const std::string& name() const& { return shape_.name; }
  std::string name() const&& { return shape_.name; }
  void set_name(std::string name) { shape_.name = std::move(name); }

  /// Everything that the observer has accumulated. The entries share memory with the observer, so
  /// writing to them sets its state. "counts" [2] holds the numbers of batches and samples; the
  /// other entries depend on the kind. Their values are ignored if the number of batches is 0.
  const std::vector<NamedState>& state() const& { return state_; }
  std::vector<NamedState> state() const&& { return state_; }

 protected:
  /// Throws: QuantError if there is no channel, or if there are several channels but no axis.
  explicit Observer(ObserverShape shape);

  /// A batch of n elements with the layout [n / (channels * inner), channels, inner]. All elements
  /// are finite. If only the extremes of the batch are known, x is null and n is 0; else n > 0.
  struct Batch {
    const float* x;
    int64_t n;
    int64_t channels;
    int64_t inner;
  };
  /// Adds a batch to the state, which is all zeros before the first batch. count() does not include
  /// this batch yet. extremes: finite [min, max] of each channel. If accumulate() throws, it must
  /// leave the state unchanged.
  virtual void accumulate(const Batch& batch, std::span<const Range> extremes) = 0;
  /// The range of each channel. Called only after a batch, with a state that passed check_state().
  virtual std::vector<Range> choose_ranges(const QType& type, QScheme scheme) const = 0;
  /// Joins the state with that of another observer of the same kind and shape. Both saw a shard of
  /// the same batch after they had the state `before`, whose count() may be 0. "counts" is joined
  /// already. The base version throws QuantError.
  virtual void join_shard(const std::vector<NamedState>& before,
                          const std::vector<NamedState>& other);
  /// Throws: DataError if no sequence of batches could have produced the state. Called before each
  /// use of a state that has seen a batch.
  virtual void check_state() const = 0;

  /// Widens ranges [channels, 2], min and max, so that they cover others, too.
  static void cover(Tensor& ranges, const Tensor& others);
  /// Adds a tensor of zeros, or counts from 0 to kMostCount, to the state, and returns it.
  /// Throws: QuantError if the name is taken.
  Tensor add_state(std::string name, const Shape& shape);
  IntegerBuffer add_counts(std::string name, const Shape& shape);
  /// Throws: DataError naming layer, kind and channel if a range is not finite.
  void check_finite(std::span<const Range> ranges, const char* what) const;
  /// The layer, or the kind if the layer has no name; for errors.
  std::string where() const;

 private:
  void add(NamedState entry);
  void check_channels(int64_t channels) const;
  void take(const Batch& batch, std::span<const Range> extremes, int64_t samples);

  ObserverShape shape_;
  std::vector<NamedState> state_;
  IntegerBuffer counts_;  // [2]: batches, samples
};

}  // namespace quantrain::quant
