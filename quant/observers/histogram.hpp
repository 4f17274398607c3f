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

/// Range of least squared error: sum over bins of count * (x' - x)^2, x the bin's centre, x' what
/// (3) and (1) make of it with the parameters that (2) makes of the range. Cutting off what is rare
/// makes the error of the rest smaller.   docs/quantization.md (14)
/// The search runs over what a range is to codes: how many lie below 0, and how far they are apart.
/// A coarse grid over both, then from its best places steps that halve down to one code and one
/// bin. [min, max] of the data is the range unless another one is better. With more codes than
/// bins, the counts cannot tell a rounding error, and it is [min, max].
/// Source: the objective is that of PyTorch's HistogramObserver, which takes values to be spread
/// evenly over bins and codes to lie where no rounded zero point puts them.
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
