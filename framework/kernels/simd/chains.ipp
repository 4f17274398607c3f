#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/batch.hpp"

// Products of one row, or of few rows. A tile of few rows has too few sums to hide the latency of
// a multiply-add, so these kernels compute strips that are wider than tiles. If there are too few
// columns for wide strips, each sum is split into four chains: term t goes to chain t % 4. Lanes
// run along the columns.
namespace quantrain::kernels::simd {

// gemm.ipp explains this option.
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/// Computes columns [j, j + columns) of all rows. These columns of a row take kVectors vectors; the
/// last vector may be partial.
template <class Arch, int kChains, int kVectors>
void columns_of_chains_f32(const FewF32& p, int64_t j, int64_t columns) {
  using V = Batch<float, Arch>;
  constexpr int kLanes = static_cast<int>(V::size);
  constexpr int kLast = (kVectors - 1) * kLanes;
  const int64_t in_last = columns - kLast;
  const auto load = [in_last](const float* from, int v) QUANTRAIN_INLINE {
    if (v + 1 == kVectors && in_last < kLanes) return load_first<Arch>(from + kLast, in_last);
    return V::load_unaligned(from + v * kLanes);
  };
  for (int64_t i = 0; i < p.m; ++i) {
    const float* const a = p.a + i * p.a_step;
    const float* b = p.b + j;
    V sum[kChains][kVectors];
    QUANTRAIN_UNROLL for (int q = 0; q < kChains; ++q) {
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) sum[q][v] = V(0.0f);
    }
    const auto add = [&](int q, int64_t t) QUANTRAIN_INLINE {
      const V factor(a[t]);
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[q][v] = fused<Arch>(factor, load(b, v), sum[q][v]);
      }
      b += p.b_step;
    };
    int64_t t = 0;
    for (; t + kChains <= p.k; t += kChains) {
      QUANTRAIN_UNROLL for (int q = 0; q < kChains; ++q) add(q, t + q);
    }
    QUANTRAIN_UNROLL for (int q = 0; q < kChains - 1; ++q) {
      if (t + q < p.k) add(q, t + q);
    }
    float* const c = p.c + i * p.c_step + j;
    const V lo(p.lo);
    const V hi(p.hi);
    QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
      V all = sum[0][v];
      if constexpr (kChains == 4) all = (all + sum[1][v]) + (sum[2][v] + sum[3][v]);
      if (p.accumulate) all = all + load(c, v);
      if (p.bias != nullptr) all = all + load(p.bias + j, v);
      // With the operands in this order, a NaN stays NaN.
      all = xsimd::min(hi, xsimd::max(lo, all));
      if (v + 1 == kVectors && in_last < kLanes) {
        store_first<Arch>(c + kLast, all, in_last);
      } else {
        all.store_unaligned(c + v * kLanes);
      }
    }
  }
}

/// Calls columns_of_chains_f32 with the fewest vectors that hold `columns` columns, at most
/// kVectors.
template <class Arch, int kChains, int kVectors>
void strip_of_chains_f32(const FewF32& p, int64_t j, int64_t columns) {
  if constexpr (kVectors > 1) {
    if (columns <= (kVectors - 1) * static_cast<int64_t>(Batch<float, Arch>::size)) {
      return strip_of_chains_f32<Arch, kChains, kVectors - 1>(p, j, columns);
    }
  }
  columns_of_chains_f32<Arch, kChains, kVectors>(p, j, columns);
}

template <class Arch>
void chains_f32(const FewF32& p) {
  if (p.n == 0) return;
  constexpr int64_t kLanes = Batch<float, Arch>::size;
  if (p.chains == 4) {
    constexpr int kVectors = kRegisters<Arch> == 32 ? 4 : 2;
    constexpr int64_t kWidth = kVectors * kLanes;
    for (int64_t j = 0; j < p.n; j += kWidth) {
      strip_of_chains_f32<Arch, 4, kVectors>(p, j, p.n - j < kWidth ? p.n - j : kWidth);
    }
    return;
  }
  // Eight sums hide the latency. All strips have about the same number of vectors.
  constexpr int kVectors = 8;
  const int64_t vectors = (p.n + kLanes - 1) / kLanes;
  const int64_t strips = (vectors + kVectors - 1) / kVectors;
  const int64_t width = (vectors + strips - 1) / strips * kLanes;
  for (int64_t j = 0; j < p.n; j += width) {
    strip_of_chains_f32<Arch, 1, kVectors>(p, j, p.n - j < width ? p.n - j : width);
  }
}

#if !defined(__clang__)
#pragma GCC pop_options
#endif

}  // namespace quantrain::kernels::simd
