#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

// The obvious loops. They say what each kernel of both lists computes, and the tests compare the
// kernels with them.
namespace quantrain::kernels::reference {

#define QUANTRAIN_KERNEL(name, parameters) void name parameters;
#include "framework/kernels/dispatch/float_kernels.inc"
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL

}  // namespace quantrain::kernels::reference
