#pragma once

#include "framework/kernels/dispatch/dispatch.hpp"

namespace quantrain::kernels {

/// Like dot_u8s8 of the table, but requantizes with any shifts, so RequantizeU8::round may be null.
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p);

}  // namespace quantrain::kernels
