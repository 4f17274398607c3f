#include "quant/observers/spec.hpp"

#include <array>
#include <utility>

#include "framework/core/error.hpp"
#include "quant/observers/mean_std.hpp"
#include "quant/observers/min_max.hpp"
#include "quant/observers/moving_average.hpp"
#include "quant/observers/percentile.hpp"

namespace quantrain::quant {
namespace {

constexpr std::array<std::string_view, 4> kNames{
    "min_max", "moving_average", "percentile", "mean_std"};

}  // namespace

std::string_view to_string(ObserverKind kind) { return kNames.at(static_cast<size_t>(kind)); }

ObserverKind observer_kind(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ObserverKind>(i);
  }
  std::string known;
  for (const std::string_view each : kNames) known.append(known.empty() ? "" : ", ").append(each);
  throw QuantError("observer", "no kind \"", name, "\"; known: ", known);
}

std::unique_ptr<Observer> make_observer(const ObserverSpec& spec, int axis, std::string name) {
  switch (spec.kind) {
    case ObserverKind::kMinMax: return std::make_unique<MinMaxObserver>(axis, std::move(name));
    case ObserverKind::kMovingAverage:
      return std::make_unique<MovingAverageObserver>(
          spec.averaging_constant, axis, std::move(name));
    case ObserverKind::kPercentile:
      return std::make_unique<PercentileObserver>(
          spec.low_percentile, spec.high_percentile, axis, std::move(name));
    case ObserverKind::kMeanStd:
      return std::make_unique<MeanStdObserver>(spec.k, axis, std::move(name));
  }
  throw QuantError("observer", "no kind ", static_cast<int>(spec.kind));
}

}  // namespace quantrain::quant
