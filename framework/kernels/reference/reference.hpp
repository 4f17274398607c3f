#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

// Each float kernel and each integer kernel as an obvious loop. The loop defines what the kernel
// computes, and tests check the kernel against the loop.
namespace quantrain::kernels::reference {

#define QUANTRAIN_KERNEL(name, parameters) void name parameters;
#include "framework/kernels/dispatch/float_kernels.inc"
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL

}  // namespace quantrain::kernels::reference
