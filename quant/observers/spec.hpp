#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

enum class ObserverKind { kMinMax, kMovingAverage, kPercentile, kMeanStd };

/// Plain data that says which observer to make; what another kind uses is ignored.
struct ObserverSpec {
  ObserverKind kind = ObserverKind::kMinMax;
  float averaging_constant = 0.01f;  ///< moving_average
  double low_percentile = 0.1;       ///< percentile, in percent
  double high_percentile = 99.9;     ///< percentile, in percent
  float k = 3.0f;                    ///< mean_std: standard deviations to each side

  friend bool operator==(const ObserverSpec&, const ObserverSpec&) = default;
};

/// "min_max", "moving_average", "percentile", "mean_std".
std::string_view to_string(ObserverKind kind);
/// Throws: QuantError listing the known kinds if there is none of this name.
ObserverKind observer_kind(std::string_view name);

/// Throws: QuantError if a number that the kind uses is out of its range.
std::unique_ptr<Observer> make_observer(const ObserverSpec& spec,
                                        int axis = -1,
                                        std::string name = {});

}  // namespace quantrain::quant
