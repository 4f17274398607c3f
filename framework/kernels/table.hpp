#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

namespace quantrain::kernels {

/// One function pointer for each kernel of kernels.inc.
struct KernelTable {
#define QUANTRAIN_KERNEL(name, parameters) void(*name) parameters;
#include "framework/kernels/kernels.inc"
#undef QUANTRAIN_KERNEL
  const char* isa_name;
  int64_t vector_floats;  ///< floats in a vector of the kernels in float32
};

}  // namespace quantrain::kernels
