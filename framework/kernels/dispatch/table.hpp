#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

namespace quantrain::kernels {

/// One function pointer for each kernel of float_kernels.inc.
struct FloatTable {
#define QUANTRAIN_KERNEL(name, parameters) void(*name) parameters;
#include "framework/kernels/dispatch/float_kernels.inc"
#undef QUANTRAIN_KERNEL
  const char* isa_name;
  int64_t vector_floats;  ///< floats in a vector
};

/// One function pointer for each kernel of integer_kernels.inc.
struct IntegerTable {
#define QUANTRAIN_KERNEL(name, parameters) void(*name) parameters;
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
  const char* isa_name;
};

}  // namespace quantrain::kernels
