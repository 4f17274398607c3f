#pragma once

// Includes Ints<Arch> of the architectures that the flags of the including file allow.
#if defined(__x86_64__)
#include "framework/kernels/simd/integer_sse2.hpp"
#endif
#if defined(__AVX2__)
#include "framework/kernels/simd/integer_avx2.hpp"
#endif
#if defined(__AVX512BW__)
#include "framework/kernels/simd/integer_avx512.hpp"
#endif
#if defined(__aarch64__)
#include "framework/kernels/simd/integer_neon64.hpp"
#endif
