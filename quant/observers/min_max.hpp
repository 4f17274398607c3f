#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// Range = [smallest, largest] of all values seen.   docs/quantization.md (14)
class MinMaxObserver : public Observer {
 public:
  using Observer::Observer;

  std::string_view kind() const override { return "min_max"; }
  std::unique_ptr<Observer> clone() const override;
  bool needs_values() const override { return false; }
};

}  // namespace quantrain::quant
