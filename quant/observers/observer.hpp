#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// Watches batches of one tensor and says which range of real values to spend the codes on, per
/// tensor or for each index along an axis.   docs/quantization.md (14)
/// An observer of one's own: derive, say the range of one batch and, if running extremes are not
/// wanted, how ranges of batches are joined. Not safe to call from several threads.
class Observer {
 public:
  /// `axis` < 0: one range for the whole tensor. `name` is the layer's, for errors.
  explicit Observer(int axis = -1, std::string name = {}) : axis_(axis), name_(std::move(name)) {}
  virtual ~Observer() = default;

  /// "min_max": the kind, in errors and configurations.
  virtual std::string_view kind() const = 0;
  /// A copy with what it has seen.
  virtual std::unique_ptr<Observer> clone() const = 0;

  /// Takes one batch in. The first fixes the number of channels.
  /// Throws: DataError naming observer and layer if x is empty or holds a NaN or an infinity;
  /// ShapeError if x has no such axis or another number of channels than before. Nothing has
  /// changed then.
  void observe(const Tensor& x);
  /// The same from the extremes of a batch, one for each channel, that were found elsewhere.
  /// Throws: as above; QuantError if needs_values().
  void observe_range(std::span<const Range> extremes, int64_t samples);
  /// Whether extremes are not enough to go by.
  virtual bool needs_values() const { return true; }

  /// Throws: QuantError if nothing was observed, or there is no such channel.
  Range range(size_t channel = 0) const;
  /// One for each channel. Throws: QuantError if nothing was observed.
  const std::vector<Range>& ranges() const;
  /// Number of ranges; 0 as long as an observer with an axis has seen nothing.
  size_t channels() const { return axis_ < 0 ? 1 : ranges_.size(); }
  /// choose_params of each range.   docs/quantization.md (2)
  /// Throws: QuantError if nothing was observed.
  QParams params(const QType& type, QScheme scheme) const;

  /// Batches observed, and samples: the extents of their first axis, summed (a scalar counts as
  /// one).
  int64_t count() const { return count_; }
  int64_t samples() const { return samples_; }
  /// Forgets all it has seen.
  void reset();

  int axis() const { return axis_; }
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  /// What it has seen, for a checkpoint: ranges [channels, 2] (min, max), or [0, 2]; counts [2]
  /// (batches, samples; above 2^24 to 24 bits).
  struct State {
    Tensor ranges;
    Tensor counts;
  };
  State state() const;
  /// Throws: ShapeError if a shape is not as above; DataError if a range is not finite or not in
  /// order.
  void set_state(const State& state);

 protected:
  Observer(const Observer&) = default;

  /// A batch: `channels` runs of `inner` elements, repeated until n; finite, not empty.
  struct Batch {
    const float* x;
    int64_t n;
    int64_t channels;
    int64_t inner;
  };
  /// Range of one batch. `ranges` holds the extremes of each channel and is to be replaced by what
  /// counts as its range.
  virtual void batch_ranges(const Batch& /*batch*/, std::span<Range> /*ranges*/) const {}
  /// Joins the range of a batch to that of all batches before it. Unless overridden: running
  /// extremes.
  virtual Range join(Range so_far, Range batch) const;

 private:
  std::string where() const;
  void check_channels(size_t channels) const;
  void check_finite(std::span<const Range> ranges, const char* what) const;
  void take(std::span<const Range> batch, int64_t samples);

  int axis_;
  std::string name_;
  std::vector<Range> ranges_;
  int64_t count_ = 0;
  int64_t samples_ = 0;
};

}  // namespace quantrain::quant
