#pragma once

// Attributes and pragmas for kernels.

/// Inlines a function or lambda in every build type. Each file of arch/ is compiled for its own
/// instruction set. If a function were not inlined, the linker might keep one file's copy of it for
/// all callers, and CPUs without that file's instruction set would run this copy. For a function
/// outside a class, write `inline QUANTRAIN_INLINE`, because the attribute alone does not declare
/// the function inline.
#define QUANTRAIN_INLINE __attribute__((always_inline))

/// Forbids the compiler to inline a function, and GCC to clone it for constant arguments.
#if defined(__clang__)
#define QUANTRAIN_ONE_COPY __attribute__((noinline))
#else
#define QUANTRAIN_ONE_COPY __attribute__((noinline, noclone))
#endif

/// The same as QUANTRAIN_INLINE for the tiles of depthwise convolutions. But with checked accesses,
/// Clang takes a minute for functions that contain all tiles, so then they are not inlined. Use it
/// only for templates on the architecture, because the linker cannot confuse copies of these.
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
#define QUANTRAIN_INLINE_TILE QUANTRAIN_ONE_COPY
#else
#define QUANTRAIN_INLINE_TILE QUANTRAIN_INLINE
#endif

/// Unrolls the next loop completely if it has at most 32 iterations, so that arrays of vectors stay
/// in registers.
#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")
