#pragma once

// Attributes and pragmas for kernels.

/// Inlines a function or lambda in every build type. Each file of arch/ is compiled for its own
/// instruction set. The linker could keep its copy of a function that is not inlined, and a CPU
/// without that instruction set could run it. Functions outside of classes are also declared
/// `inline`.
#define QUANTRAIN_INLINE __attribute__((always_inline))

/// Unrolls the next loop completely. Only then do arrays of vectors stay in registers.
#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")
