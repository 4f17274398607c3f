#pragma once

#include <string>

#include "quant/export/c99/steps.hpp"

// Gathers: operations that move codes.
namespace quantrain::c99 {

/// C code that loops over the axes. The loop over a regular axis (slices, upsampling, padding)
/// computes its indices; the loop over any other axis reads them from a table.
StepSource step_source(const integer::Gather& op, const std::string& id);

}  // namespace quantrain::c99
