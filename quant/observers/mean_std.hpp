#pragma once

#include <memory>

#include "quant/observers/range_observer.hpp"

namespace quantrain::quant {

struct MeanStdOptions {
  static constexpr std::string_view kKind = "mean_std";

  float k = 3.0f;  ///< standard deviations to each side; positive

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& options, auto& fields) { fields("k", options.k); }
  friend bool operator==(const MeanStdOptions&, const MeanStdOptions&) = default;
};

/// Range of a batch = [mean - k sigma, mean + k sigma], in double. sigma^2 is the population
/// variance (divided by n). Over several batches: the smallest minimum and the largest maximum of
/// these ranges. The range may be wider than the values.
/// docs/quantization.md (14)
class MeanStdObserver : public RangeObserver {
 public:
  /// Throws: QuantError unless k is positive and finite.
  explicit MeanStdObserver(const MeanStdOptions& options = {}, ObserverShape shape = {});

  std::string_view kind() const override { return MeanStdOptions::kKind; }

 protected:
  void batch_ranges(const Batch& batch, std::span<Range> ranges) const override;

 private:
  MeanStdOptions options_;
};

}  // namespace quantrain::quant
