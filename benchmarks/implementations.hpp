#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "framework/core/buffer.hpp"
#include "framework/core/random.hpp"
#include "framework/kernels/conv_shape.hpp"

// What kernels_bench compares: families of kernels, and the implementations of each family.
namespace quantrain::benchmarks {

/// One matrix product, op(a) [m, k] * op(b) [k, n], or one convolution, or one batch norm with ReLU
/// of images [conv.n, conv.h, conv.w, conv.c].
struct Problem {
  int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false;  ///< a lies in memory as [k, m]
  bool transpose_b = false;  ///< b lies in memory as [n, k]
  kernels::Conv2dShape conv;
  bool normalizes = false;  ///< a batch norm

  static Problem gemm(
      int64_t m, int64_t k, int64_t n, bool transpose_a = false, bool transpose_b = false) {
    return {m, k, n, transpose_a, transpose_b, {}, false};
  }
  static Problem convolution(const kernels::Conv2dShape& shape) {
    return {0, 0, 0, false, false, shape, false};
  }
  static Problem batch_norm(int64_t n, int64_t h, int64_t w, int64_t c) {
    return {0, 0, 0, false, false, {.n = n, .h = h, .w = w, .c = c}, true};
  }

  bool is_gemm() const { return m > 0; }
  /// Counts two operations for each multiply-add, including multiply-adds on padding, and one for
  /// each element of a batch norm.
  int64_t operations() const {
    if (normalizes) return conv.x_elements();
    return is_gemm() ? 2 * m * k * n : 2 * conv.y_elements() * conv.reduction();
  }
  /// For example "64x784x256", "64x784x256_nt", "64x28x28x1_32x3x3_s1_p0" or
  /// "64x28x28x16".
  std::string name() const;
};

/// Computes a problem once. A call owns its operands.
using Call = std::function<void()>;
using MakeCall = Call (*)(const Problem& problem);

/// The kernels of one library. For each family, a function prepares a problem and returns the call
/// to be timed.
struct Implementation {
  std::string name;
  void (*use_threads)(int threads) = nullptr;
  std::map<std::string, MakeCall> families;
};

Implementation quantrain_kernels();
/// Its families of fewer than 8 bits, computed by our kernels of 8 bits.
Implementation byte_kernels();
/// Its products and convolutions of bytes, computed without tiles on a CPU whose chosen set is AMX.
/// Has no families elsewhere.
Implementation vnni_kernels();
/// The same families, computed by our reference loops instead of the SIMD kernels.
Implementation reference_kernels();
#ifdef QUANTRAIN_HAS_OPENBLAS
Implementation openblas_kernels();
#endif
#ifdef QUANTRAIN_HAS_ONEDNN
/// Has no families if oneDNN's number of threads cannot be set.
Implementation onednn_kernels();
#endif
/// Loops of multiply-adds that stay in registers, to measure the peak rate. Each family has a loop,
/// which ignores the problem. Has no families unless the CPU is an x86-64 with AVX2.
Implementation peak_kernels();
/// Number of operations in one call from peak_kernels(), with the current number of threads.
int64_t peak_operations(const std::string& family);

/// Fills data with a repeated pattern of random elements: uint8 from 0 to 254, int8 from -127 to
/// 127, floats in [-1, 1).
template <class T>
void fill(T* data, int64_t n) {
  Random random(1);
  T pattern[997];
  for (T& element : pattern) {
    if constexpr (std::is_same_v<T, float>) {
      element = random.uniform(-1.0f, 1.0f);
    } else {
      element = static_cast<T>(random.below(255) - (std::is_signed_v<T> ? 127 : 0));
    }
  }
  for (int64_t i = 0; i < n; ++i) data[i] = pattern[i % 997];
}

template <class T>
Buffer<T> filled(int64_t n) {
  Buffer<T> buffer(n);
  fill(buffer.data(), n);
  return buffer;
}

}  // namespace quantrain::benchmarks
