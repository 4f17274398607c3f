#pragma once

#include <string>

#include "quant/export/c99/steps.hpp"

// Codes that move.
namespace quantrain::c99 {

/// Constant strides where an axis is regular, as in slices, upsampling and padding; else a table.
StepSource step_source(const integer::Gather& op, const std::string& id);

}  // namespace quantrain::c99
