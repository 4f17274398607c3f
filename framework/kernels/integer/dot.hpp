#pragma once

#include "framework/kernels/dispatch/dispatch.hpp"

namespace quantrain::kernels {

/// Like kernels.dot_u8s8, but allows every shift: RequantizeU8::round may be null, as it is for
/// shifts that kernels.dot_u8s8 does not support.
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p);

}  // namespace quantrain::kernels
