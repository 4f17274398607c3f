#pragma once

// Attributes and pragmas for kernels.

/// Inlines a function or lambda in every build type. Each file of arch/ is compiled for its own
/// instruction set. If a function were not inlined, the linker might keep the copy of one such file
/// for all callers, and a CPU without that instruction set would run it. For a function outside a
/// class, write `inline QUANTRAIN_INLINE`: the attribute alone does not declare it inline.
#define QUANTRAIN_INLINE __attribute__((always_inline))

/// Unrolls the next loop completely, so that arrays of vectors stay in registers.
#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")
