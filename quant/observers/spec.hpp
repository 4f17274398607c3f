#pragma once

#include <variant>

#include "quant/observers/entropy.hpp"
#include "quant/observers/histogram.hpp"
#include "quant/observers/mean_std.hpp"
#include "quant/observers/min_max.hpp"
#include "quant/observers/moving_average.hpp"
#include "quant/observers/percentile.hpp"

namespace quantrain::quant {

/// Says which observer to make: the options of one kind, plain data. Every kind there is, min-max
/// being the default; names, JSON and validation follow from this list and the options'
/// describe().
using ObserverSpec = std::variant<MinMaxOptions,
                                  MovingAverageOptions,
                                  PercentileOptions,
                                  MeanStdOptions,
                                  HistogramOptions,
                                  EntropyOptions>;

/// "percentile".
std::string_view kind(const ObserverSpec& spec);
/// Each kind with its default options, in the order of the list.
std::vector<ObserverSpec> observer_specs();
/// Default options of a kind. Throws: QuantError listing the known kinds if there is none of this
/// name.
ObserverSpec observer_spec(std::string_view kind);

/// Throws: QuantError if an option is out of its range, or the shape makes no sense.
std::unique_ptr<Observer> make_observer(const ObserverSpec& spec, ObserverShape shape = {});

}  // namespace quantrain::quant
