#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// m = x for the first batch, then m += c * (x - m) in float32, for m the smallest and the largest
/// value of a batch: ranges follow the data while a network trains, and single outliers count
/// little.   docs/quantization.md (14)
class MovingAverageObserver : public Observer {
 public:
  /// Throws: QuantError unless 0 < c <= 1.
  explicit MovingAverageObserver(float c = 0.01f, int axis = -1, std::string name = {});

  std::string_view kind() const override { return "moving_average"; }
  std::unique_ptr<Observer> clone() const override;
  bool needs_values() const override { return false; }

 protected:
  Range join(Range so_far, Range batch) const override;

 private:
  float c_;
};

}  // namespace quantrain::quant
