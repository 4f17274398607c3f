#include "quant/observers/moving_average.hpp"

#include "framework/core/error.hpp"

namespace quantrain::quant {

MovingAverageObserver::MovingAverageObserver(float c, int axis, std::string name)
    : Observer(axis, std::move(name)), c_(c) {
  if (!(c > 0.0f && c <= 1.0f)) {
    throw QuantError("moving_average observer", "the constant must be in (0, 1], got ", c);
  }
}

std::unique_ptr<Observer> MovingAverageObserver::clone() const {
  return std::unique_ptr<Observer>(new MovingAverageObserver(*this));
}

Range MovingAverageObserver::join(Range so_far, Range batch) const {
  return {so_far.min + c_ * (batch.min - so_far.min), so_far.max + c_ * (batch.max - so_far.max)};
}

}  // namespace quantrain::quant
