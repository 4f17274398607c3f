#include "quant/observers/moving_average.hpp"

#include <algorithm>

#include "framework/core/error.hpp"

namespace quantrain::quant {

std::unique_ptr<Observer> MovingAverageOptions::make(ObserverShape shape) const {
  return std::make_unique<MovingAverageObserver>(*this, std::move(shape));
}

MovingAverageObserver::MovingAverageObserver(const MovingAverageOptions& options,
                                             ObserverShape shape)
    : RangeObserver(std::move(shape)), options_(options) {
  if (!(options.constant > 0.0f && options.constant <= 1.0f)) {
    throw QuantError(
        "moving_average observer", "the constant must be in (0, 1], got ", options.constant);
  }
}

Range MovingAverageObserver::join(Range so_far, Range batch) const {
  const float c = options_.constant;
  const float min = so_far.min + c * (batch.min - so_far.min);
  const float max = so_far.max + c * (batch.max - so_far.max);
  return {min, std::max(min, max)};  // rounding can move the maximum below the minimum
}

}  // namespace quantrain::quant
