#pragma once

#include "framework/kernels/dispatch/dispatch.hpp"

namespace quantrain::kernels {

/// Like kernels.dot_u8s8, but RequantizeU8::round may be null, so every shift is allowed.
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p);

}  // namespace quantrain::kernels
