#pragma once

#include <vector>

#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

// A learned scale that covers less than a 64th of the weights' range, or 64 times the range, is
// stuck: learning moves a scale that works by a factor of about 4 at most from the covering one
// (LSQ starts at 2 mean|w| / sqrt(qmax), which covers a fifth of the range at 8 bits).
inline constexpr double kSmallestScaleRatio = 1.0 / 64.0;
inline constexpr double kLargestScaleRatio = 64.0;

/// What is wrong, the worst first.
std::vector<Finding> find(const Diagnosis& diagnosis);

}  // namespace quantrain::quant
