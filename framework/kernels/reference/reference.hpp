#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

// The obvious loop of each kernel of both lists. The loop defines what the kernel computes, and the
// tests compare the kernel with it.
namespace quantrain::kernels::reference {

#define QUANTRAIN_KERNEL(name, parameters) void name parameters;
#include "framework/kernels/dispatch/float_kernels.inc"
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL

}  // namespace quantrain::kernels::reference
