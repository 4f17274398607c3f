#pragma once

#include "framework/kernels/dispatch/dispatch.hpp"

namespace quantrain::kernels {

/// dot_u8s8 of the table, also for requantization with any shifts (RequantizeU8::round is null).
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p);

}  // namespace quantrain::kernels
