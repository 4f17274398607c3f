#pragma once

#include <string>

#include "quant/export/c99/steps.hpp"

// Gathers: operations that move codes.
namespace quantrain::c99 {

/// Loops over the axes. A regular axis (slices, upsampling, padding) has a constant stride; any
/// other axis reads a table of indices.
StepSource step_source(const integer::Gather& op, const std::string& id);

}  // namespace quantrain::c99
