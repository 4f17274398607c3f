#include "framework/kernels/dispatch/table.hpp"
#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels {

extern const FloatTable kReferenceFloatKernels;
const FloatTable kReferenceFloatKernels = {
#define QUANTRAIN_KERNEL(name, parameters) &reference::name,
#include "framework/kernels/dispatch/float_kernels.inc"
#undef QUANTRAIN_KERNEL
    "reference", 1};

}  // namespace quantrain::kernels
