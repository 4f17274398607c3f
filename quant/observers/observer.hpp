#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/named_tensor.hpp"

namespace quantrain::quant {

/// What an observer watches.
struct ObserverShape {
  int axis = -1;          ///< < 0: the whole tensor
  int64_t channels = 1;   ///< extent along the axis; 1 per tensor
  std::string name = {};  ///< the layer's, for errors
};

/// Watches batches of one tensor and says which range of real values to spend the codes on, per
/// tensor or for each index along an axis.   docs/quantization.md (14)
/// An observer of one's own: derive (from RangeObserver if a running [min, max] is enough),
/// register state, add a batch to it, choose ranges from it. Not safe to call from several threads.
class Observer {
 public:
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// "min_max": the kind, in errors and configurations.
  virtual std::string_view kind() const = 0;

  /// Takes one batch in.
  /// Throws: DataError naming observer and layer if x is empty or holds a NaN or an infinity, or
  /// the state, loaded from a file perhaps, makes no sense; ShapeError if x has no such axis or
  /// another number of channels. Nothing has changed then.
  void observe(const Tensor& x);
  /// The same from the extremes of a batch, one for each channel, that were found elsewhere.
  /// Throws: as above; QuantError if needs_values().
  void observe_range(std::span<const Range> extremes, int64_t samples);
  /// Whether extremes are not enough to go by.
  virtual bool needs_values() const { return true; }

  /// The range of each channel to spend the codes of this type on.
  /// Throws: QuantError if nothing was observed, or the type makes no sense; DataError if the state
  /// makes no sense.
  std::vector<Range> ranges(const QType& type, QScheme scheme) const;
  /// choose_params of each range.   docs/quantization.md (2)
  /// Throws: as ranges().
  QParams params(const QType& type, QScheme scheme) const;
  /// The parameters that x alone gives; what was seen before stays.
  /// Throws: as observe() and ranges().
  QParams params_of(const Tensor& x, const QType& type, QScheme scheme);

  /// Batches observed, and samples: the extents of their first axis, summed (a scalar counts as
  /// one). Throws: DataError if the state makes no sense.
  int64_t count() const;
  int64_t samples() const;
  /// Forgets all it has seen: every state is 0.
  void reset();

  int axis() const { return shape_.axis; }
  int64_t channels() const { return shape_.channels; }
  const std::string& name() const& { return shape_.name; }
  std::string name() const&& { return shape_.name; }
  void set_name(std::string name) { shape_.name = std::move(name); }

  /// All that it has seen: handles on the state itself, so that what is written to them is what it
  /// goes on from. "counts" [2, 2]: batches and samples, as exact_count.hpp says; the rest is the
  /// kind's. With 0 batches the rest does not matter.
  const std::vector<NamedTensor>& state() const& { return state_; }
  std::vector<NamedTensor> state() const&& { return state_; }

 protected:
  /// Throws: QuantError unless there is a channel, and one only where there is no axis.
  explicit Observer(ObserverShape shape);

  /// A batch: `channels` runs of `inner` elements, repeated until n; finite, not empty. x is null
  /// where only the extremes are known.
  struct Batch {
    const float* x;
    int64_t n;
    int64_t channels;
    int64_t inner;
  };
  /// Adds a batch to the state, which is 0 when the first comes; count() is that of the batches
  /// before. `extremes`: finite [min, max] of each channel. If it throws, the state is as it was.
  virtual void accumulate(const Batch& batch, std::span<const Range> extremes) = 0;
  /// The range of each channel; called when there is a state that check_state() has passed.
  virtual std::vector<Range> choose_ranges(const QType& type, QScheme scheme) const = 0;
  /// Throws: DataError unless the state could be of batches seen. Called before it is used.
  virtual void check_state() const = 0;

  /// Zeros that are part of state(). Throws: QuantError if the name is taken.
  Tensor add_state(std::string name, const Shape& shape);
  /// Throws: DataError naming layer, kind and channel if a range is not finite.
  void check_finite(std::span<const Range> ranges, const char* what) const;
  /// Layer, or kind where the layer has no name: for errors.
  std::string where() const;

 private:
  void check_channels(int64_t channels) const;
  void take(const Batch& batch, std::span<const Range> extremes, int64_t samples);

  ObserverShape shape_;
  std::vector<NamedTensor> state_;
  Tensor counts_;
};

}  // namespace quantrain::quant
