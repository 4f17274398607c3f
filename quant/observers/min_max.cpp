#include "quant/observers/min_max.hpp"

namespace quantrain::quant {

std::unique_ptr<Observer> MinMaxObserver::clone() const {
  return std::unique_ptr<Observer>(new MinMaxObserver(*this));
}

}  // namespace quantrain::quant
