#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// Range of a batch = [p_low, p_high], nearest rank: of n values in ascending order, percentile p
/// is number max(1, ceil(p n / 100)). Over batches: running extremes.   docs/quantization.md (14)
class PercentileObserver : public Observer {
 public:
  /// In percent. Throws: QuantError unless 0 <= low < high <= 100.
  explicit PercentileObserver(double low = 0.1,
                              double high = 99.9,
                              int axis = -1,
                              std::string name = {});

  std::string_view kind() const override { return "percentile"; }
  std::unique_ptr<Observer> clone() const override;

 protected:
  void batch_ranges(const Batch& batch, std::span<Range> ranges) const override;

 private:
  double low_;
  double high_;
};

}  // namespace quantrain::quant
