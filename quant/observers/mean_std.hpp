#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// Range of a batch = [mean - k sigma, mean + k sigma], population variance (divided by n), in
/// double. Over batches: running extremes. It may reach beyond the values themselves.
/// docs/quantization.md (14)
class MeanStdObserver : public Observer {
 public:
  /// Throws: QuantError unless k is positive and finite.
  explicit MeanStdObserver(float k = 3.0f, int axis = -1, std::string name = {});

  std::string_view kind() const override { return "mean_std"; }
  std::unique_ptr<Observer> clone() const override;

 protected:
  void batch_ranges(const Batch& batch, std::span<Range> ranges) const override;

 private:
  float k_;
};

}  // namespace quantrain::quant
