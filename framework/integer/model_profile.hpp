#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/integer_model.hpp"

namespace quantrain {

/// Where an integer model's time goes.
struct ModelProfile {
  struct Step {
    std::string name;  ///< of the layer
    std::string kernel;
    double microseconds = 0.0;  ///< median of the calls
  };

  int64_t samples = 0;  ///< of a call
  int calls = 0;
  std::vector<Step> steps;  ///< in the program's order

  /// Of all steps.
  double microseconds() const;
};

/// Runs the model on a batch of codes, once to warm up and then `calls` times, and times each step;
/// on as many threads as ever.
/// Throws: ShapeError if x is no whole number of samples, from 1 to IntegerModel::kChunk, or the
/// network has several inputs; DataError unless calls are positive.
ModelProfile profile(const IntegerModel& model, std::span<const uint8_t> x, int calls = 20);
/// For several inputs, in the program's order.
ModelProfile profile(const IntegerModel& model,
                     std::span<const std::span<const uint8_t>> x,
                     int calls = 20);

/// A table: layer, kernel, microseconds and their share, and the total.
std::ostream& operator<<(std::ostream& stream, const ModelProfile& profile);

}  // namespace quantrain
