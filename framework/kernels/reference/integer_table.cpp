#include "framework/kernels/dispatch/table.hpp"
#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels {

extern const IntegerTable kReferenceIntegerKernels;
const IntegerTable kReferenceIntegerKernels = {
#define QUANTRAIN_KERNEL(name, parameters) &reference::name,
#include "framework/kernels/dispatch/integer_kernels.inc"
#undef QUANTRAIN_KERNEL
    "reference"};

}  // namespace quantrain::kernels
