#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// An observer that keeps a running [min, max], which does not depend on the type of the codes. A
/// derived class may override the range of one batch (by default its extremes) and how two ranges
/// are joined (by default into the smallest range that covers both).
/// State: "range" [channels, 2].
class RangeObserver : public Observer {
 public:
  /// Throws: QuantError if nothing was observed, or there is no such channel; DataError if the
  /// state is invalid.
  Range range(size_t channel = 0) const;

 protected:
  explicit RangeObserver(ObserverShape shape);

  /// Sets the batch's range of each channel. On entry, `ranges` holds the batch's extremes.
  virtual void batch_ranges(const Batch& /*batch*/, std::span<Range> /*ranges*/) const {}
  /// Joins the range of a batch with the range of all batches before it. Unless overridden, the
  /// result covers both.
  virtual Range join(Range so_far, Range batch) const;

  /// The smallest range that covers both. So the extremes are those of the whole batch.
  void join_shard(const std::vector<NamedState>& before,
                  const std::vector<NamedState>& other) final;
  void accumulate(const Batch& batch, std::span<const Range> extremes) final;
  std::vector<Range> choose_ranges(const QType& type, QScheme scheme) const final;
  void check_state() const final;

 private:
  Tensor range_;
};

}  // namespace quantrain::quant
