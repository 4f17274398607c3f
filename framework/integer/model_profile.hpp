#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/integer_model.hpp"

namespace quantrain {

/// The time that each step of an integer model takes.
struct ModelProfile {
  struct Step {
    std::string name;  ///< of the layer
    std::string kernel;
    double microseconds = 0.0;  ///< median of the calls
  };

  int64_t samples = 0;  ///< per call
  int calls = 0;
  std::vector<Step> steps;  ///< in the program's order

  /// Sum over all steps.
  double microseconds() const;
};

/// Times each step of the model on a batch of codes: one warm-up run, then `calls` measured runs,
/// on threads() threads. All threads share each step. IntegerModel::run() may instead give each
/// thread whole samples, so it can take less time than the sum over all steps.
/// Throws: ShapeError if x does not hold 1 to IntegerModel::kChunk whole samples, or the network
/// has several inputs; DataError unless calls is positive.
ModelProfile profile(const IntegerModel& model, std::span<const uint8_t> x, int calls = 20);
/// For several inputs, in the program's order.
ModelProfile profile(const IntegerModel& model,
                     std::span<const std::span<const uint8_t>> x,
                     int calls = 20);

/// Prints a table with layer, kernel, microseconds and share of each step, and the total.
std::ostream& operator<<(std::ostream& stream, const ModelProfile& profile);

}  // namespace quantrain
