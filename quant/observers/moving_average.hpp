#pragma once

#include <memory>

#include "quant/observers/range_observer.hpp"

namespace quantrain::quant {

struct MovingAverageOptions {
  static constexpr std::string_view kKind = "moving_average";

  float constant = 0.01f;  ///< weight of the newest batch, in (0, 1]

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& options, auto& fields) { fields("constant", options.constant); }
  friend bool operator==(const MovingAverageOptions&, const MovingAverageOptions&) = default;
};

/// Range = moving averages of the batches' smallest and largest values, each in float32: m = x for
/// the first batch, then m += constant * (x - m), where x is the batch's smallest (or largest)
/// value. The range follows the data while a network trains, and single outliers count little.
/// docs/quantization.md (14)
class MovingAverageObserver : public RangeObserver {
 public:
  /// Throws: QuantError if the constant is out of its range.
  explicit MovingAverageObserver(const MovingAverageOptions& options = {},
                                 ObserverShape shape = {});

  std::string_view kind() const override { return MovingAverageOptions::kKind; }
  bool needs_values() const override { return false; }

 protected:
  Range join(Range so_far, Range batch) const override;

 private:
  MovingAverageOptions options_;
};

}  // namespace quantrain::quant
