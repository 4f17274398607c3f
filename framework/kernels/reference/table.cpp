#include "framework/kernels/table.hpp"
#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels {

extern const KernelTable kReferenceKernels;
const KernelTable kReferenceKernels = {
#define QUANTRAIN_KERNEL(name, parameters) &reference::name,
#include "framework/kernels/kernels.inc"
#undef QUANTRAIN_KERNEL
    "reference", 1};

}  // namespace quantrain::kernels
