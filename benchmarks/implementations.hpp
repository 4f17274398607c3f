#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "framework/core/buffer.hpp"
#include "framework/core/random.hpp"
#include "framework/kernels/conv_shape.hpp"

// What kernels_bench compares: for each family of kernels, who can compute it.
namespace quantrain::benchmarks {

/// One product of matrices, op(a) [m, k] * op(b) [k, n], or one convolution.
struct Problem {
  int64_t m = 0, k = 0, n = 0;
  bool transpose_a = false;  ///< a lies in memory as [k, m]
  bool transpose_b = false;  ///< b lies in memory as [n, k]
  kernels::Conv2dShape conv;

  static Problem gemm(
      int64_t m, int64_t k, int64_t n, bool transpose_a = false, bool transpose_b = false) {
    return {m, k, n, transpose_a, transpose_b, {}};
  }
  static Problem convolution(const kernels::Conv2dShape& shape) {
    return {0, 0, 0, false, false, shape};
  }

  bool is_gemm() const { return m > 0; }
  /// Two for each multiply-add; those with the padding around an image count too.
  int64_t operations() const {
    return is_gemm() ? 2 * m * k * n : 2 * conv.y_elements() * conv.reduction();
  }
  /// "64x784x256", with "_nt" or "_tn" behind; "64x28x28x1_32x3x3_s1_p0".
  std::string name() const;
};

/// Computes a problem once, on operands of its own.
using Call = std::function<void()>;
using MakeCall = Call (*)(const Problem& problem);

/// Somebody's kernels: for each family, what makes a problem of it ready to be timed.
struct Implementation {
  std::string name;
  void (*use_threads)(int threads) = nullptr;
  std::map<std::string, MakeCall> families;
};

Implementation quantrain_kernels();
/// Our obvious loops, through the same blocks.
Implementation reference_kernels();
#ifdef QUANTRAIN_HAS_OPENBLAS
Implementation openblas_kernels();
#endif
#ifdef QUANTRAIN_HAS_ONEDNN
/// Without families if its number of threads cannot be set.
Implementation onednn_kernels();
#endif
/// Loops over registers, for every family; the problem does not matter but for its name. Without
/// families on other machines than x86-64 with AVX2.
Implementation peak_kernels();
/// Operations of one call of peak_kernels().
int64_t peak_operations(const std::string& family);

/// Elements that are neither 0 nor out of range for their type: bytes are random, floats in [-1,
/// 1).
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
