#pragma once

// What kernels ask of the compiler.

/// Inlines a function or lambda in every build type. A file of arch/ is compiled with its own
/// instruction set, and what stays out of line there may run on a CPU that lacks it. Functions
/// outside of classes are `inline` too.
#define QUANTRAIN_INLINE __attribute__((always_inline))

/// Unrolls the next loop whole: only then do arrays of vectors stay in registers.
#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")
