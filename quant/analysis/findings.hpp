#pragma once

#include <string>
#include <vector>

#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

// A learned scale that covers less than a 64th of the weights' range, or 64 times the range, is
// stuck: learning moves a scale that works by a factor of about 4 at most from the covering one
// (LSQ starts at 2 mean|w| / sqrt(qmax), which covers a fifth of the range at 8 bits).
inline constexpr double kSmallestScaleRatio = 1.0 / 64.0;
inline constexpr double kLargestScaleRatio = 64.0;

/// Whether the float values lie within a quarter of the codes: two bits and more are not used.
inline bool uses_few_codes(const LayerDiagnosis& layer) {
  return layer.codes > 0 && layer.codes_range < static_cast<double>(layer.codes) / 4.0;
}

/// What is wrong, the worst first.
std::vector<Finding> find(const Diagnosis& diagnosis);

/// "3.9 bits lost, alone 40.9 % of an output's spread", or "47 % of the targets' spread or recall"
/// if that is what makes the finding's output_error.
std::string loss_text(const Finding& finding, const Diagnosis& diagnosis);

}  // namespace quantrain::quant
