#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

// The obvious loops: they say what each kernel of both lists computes, and test it.
namespace quantrain::kernels::reference {

#define QUANTRAIN_KERNEL(name, parameters) void name parameters;
#include "framework/kernels/dispatch/float_kernels.inc"
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL

}  // namespace quantrain::kernels::reference
