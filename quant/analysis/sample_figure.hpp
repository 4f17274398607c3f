#pragma once

#include <string>

#include "quant/analysis/diagnosis.hpp"

namespace quantrain::quant {

/// A picture of a sample's input as HTML: a PNG in a data URI for images [H, W, 1 or 3], else
/// curves along the first axis, one for each of the last axis's first indices. Empty if the report
/// keeps no input.
std::string sample_figure(const SampleDiagnosis& sample);

}  // namespace quantrain::quant
