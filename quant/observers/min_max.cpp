#include "quant/observers/min_max.hpp"

namespace quantrain::quant {

std::unique_ptr<Observer> MinMaxOptions::make(ObserverShape shape) const {
  return std::make_unique<MinMaxObserver>(*this, std::move(shape));
}

}  // namespace quantrain::quant
