#pragma once

#include <variant>

#include "quant/observers/entropy.hpp"
#include "quant/observers/histogram.hpp"
#include "quant/observers/mean_std.hpp"
#include "quant/observers/min_max.hpp"
#include "quant/observers/moving_average.hpp"
#include "quant/observers/percentile.hpp"
#include "quant/observers/recent_min_max.hpp"

namespace quantrain::quant {

/// Selects an observer by holding the options of its kind, as plain data. The variant lists all
/// kinds and defaults to min-max; names, JSON and validation follow from this list and from the
/// options' describe().
using ObserverSpec = std::variant<MinMaxOptions,
                                  RecentMinMaxOptions,
                                  MovingAverageOptions,
                                  PercentileOptions,
                                  MeanStdOptions,
                                  HistogramOptions,
                                  EntropyOptions>;

/// The name of a kind, such as "percentile".
std::string_view kind(const ObserverSpec& spec);
/// Each kind with its default options, in the order of the list.
std::vector<ObserverSpec> observer_specs();
/// Default options of a kind. Throws: QuantError listing the known kinds if `kind` is not one of
/// them.
ObserverSpec observer_spec(std::string_view kind);

/// Throws: QuantError if an option is out of its range, or the shape is invalid.
std::unique_ptr<Observer> make_observer(const ObserverSpec& spec, ObserverShape shape = {});

}  // namespace quantrain::quant
