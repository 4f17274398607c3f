#pragma once

#include <memory>

#include "quant/observers/binned_observer.hpp"

namespace quantrain::quant {

struct HistogramOptions {
  static constexpr std::string_view kKind = "histogram";

  int bins = 2048;  ///< of each channel, 64 to 65536

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& options, auto& fields) { fields("bins", options.bins); }
  friend bool operator==(const HistogramOptions&, const HistogramOptions&) = default;
};

/// The range with the least squared error: sum over bins of count * (x' - x)^2, where x is the
/// bin's centre. x' is x after quantizing and dequantizing it by equations (3) and (1), with the
/// parameters that equation (2) gives for the range. A range that cuts off rare values makes the
/// rounding error of all other values smaller.   docs/quantization.md (14)
/// If the values lie on a grid that the codes can have, the range is that of the grid. Otherwise, a
/// search has two variables: the number of codes below 0, and the distance between codes. It
/// evaluates a coarse grid and the distances that put a code on the farthest value, then refines
/// the best points with step sizes that halve down to one code and one bin, and last by least
/// squares. The range is [min, max] of the data unless another range is better. It is also
/// [min, max] if there are more codes than bins, because the counts then say nothing about rounding
/// errors.
/// Source: the objective of PyTorch's HistogramObserver. That observer assumes that values are
/// spread evenly over bins, and it does not round the zero point when it places the codes.
class HistogramObserver : public BinnedObserver {
 public:
  /// Throws: QuantError if there are too few or too many bins.
  explicit HistogramObserver(const HistogramOptions& options = {}, ObserverShape shape = {})
      : BinnedObserver(options.bins, std::move(shape)) {}

  std::string_view kind() const override { return HistogramOptions::kKind; }

 protected:
  Range choose_range(const Bins& bins, const QType& type, QScheme scheme) const override;
};

}  // namespace quantrain::quant
