#pragma once

#include <memory>

#include "quant/observers/range_observer.hpp"

namespace quantrain::quant {

/// In percent, 0 <= low < high <= 100.
struct PercentileOptions {
  static constexpr std::string_view kKind = "percentile";

  double low = 0.1;
  double high = 99.9;

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& options, auto& fields) {
    fields("low", options.low);
    fields("high", options.high);
  }
  friend bool operator==(const PercentileOptions&, const PercentileOptions&) = default;
};

/// Range of a batch = [p_low, p_high], nearest rank: percentile p of n values is the
/// value with rank max(1, ceil(p n / 100)) in ascending order. Over several batches: the smallest
/// minimum and the largest maximum of these ranges.
/// docs/quantization.md (14)
class PercentileObserver : public RangeObserver {
 public:
  /// Throws: QuantError unless 0 <= low < high <= 100.
  explicit PercentileObserver(const PercentileOptions& options = {}, ObserverShape shape = {});

  std::string_view kind() const override { return PercentileOptions::kKind; }

 protected:
  void batch_ranges(const Batch& batch, std::span<Range> ranges) const override;

 private:
  PercentileOptions options_;
};

}  // namespace quantrain::quant
