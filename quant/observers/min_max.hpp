#pragma once

#include <memory>

#include "quant/observers/range_observer.hpp"

namespace quantrain::quant {

struct MinMaxOptions {
  static constexpr std::string_view kKind = "min_max";

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& /*options*/, auto& /*fields*/) {}
  friend bool operator==(const MinMaxOptions&, const MinMaxOptions&) = default;
};

/// Range = [smallest, largest] of all values seen.   docs/quantization.md (14)
class MinMaxObserver : public RangeObserver {
 public:
  explicit MinMaxObserver(const MinMaxOptions& /*options*/ = {}, ObserverShape shape = {})
      : RangeObserver(std::move(shape)) {}

  std::string_view kind() const override { return MinMaxOptions::kKind; }
  bool needs_values() const override { return false; }
};

}  // namespace quantrain::quant
