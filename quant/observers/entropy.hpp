#pragma once

#include <memory>

#include "quant/observers/binned_observer.hpp"

namespace quantrain::quant {

struct EntropyOptions {
  static constexpr std::string_view kKind = "entropy";

  int bins = 2048;  ///< of each channel, 64 to 65536

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& options, auto& fields) { fields("bins", options.bins); }
  friend bool operator==(const EntropyOptions&, const EntropyOptions&) = default;
};

/// Range [max(min, -t), min(max, t)]. The threshold t minimizes the Kullback-Leibler divergence
/// between the clipped distribution P and the quantized distribution Q.
/// docs/quantization.md (14)
/// For each candidate t = i * width, the window is the bins of [0, t) if no value is negative, else
/// those of [-t, t). There are n levels: all codes of the type, or, if no value is negative and the
/// scheme is symmetric, only the codes from the zero point on. A window has at least n bins. Then
///   P   counts of the window; values beyond it are added to its first and last bin;
///   Q   counts of the window without the values beyond it. Of the w bins of the window, bin b
///       belongs to level floor(b n / w). The sum of each level is spread evenly over those bins
///       of the level that are not empty;
///   divergence = sum of p log(p / q), both normalized to a sum of 1; infinite where q = 0 < p.
/// If several t give the minimum, the largest is taken. If even the widest window has fewer bins
/// than levels, the range is [min, max].
/// Exact zeros are not counted: their code is exact, and after a ReLU they would outweigh the rest.
/// Source: S. Migacz, 8-bit Inference with TensorRT, GTC 2017; the levels are those of
/// NVIDIA's pytorch-quantization, the window [-t, t) that of MXNet and ONNX Runtime.
class EntropyObserver : public BinnedObserver {
 public:
  /// Throws: QuantError if there are too few or too many bins.
  explicit EntropyObserver(const EntropyOptions& options = {}, ObserverShape shape = {})
      : BinnedObserver(options.bins, std::move(shape)) {}

  std::string_view kind() const override { return EntropyOptions::kKind; }

 protected:
  Range choose_range(const Bins& bins, const QType& type, QScheme scheme) const override;
};

}  // namespace quantrain::quant
