#pragma once

#include "framework/kernels/simd/lanes.hpp"

// Products of few rows or columns whose operands are both contiguous along k: sums in 16 lanes
// along it, joined in the tree of sum(), so that nothing is turned and no lane is empty.
namespace quantrain::kernels::simd {

#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")

/// Rows of dots_f32's tiles, and columns of those of kRows rows: as many sums of 16 lanes as find
/// registers.
template <class Arch>
inline constexpr int kDotRows = Lanes<Arch>::kParts == 1 ? 4 : 2;
template <class Arch, int kRows>
constexpr int dot_columns() {
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
  constexpr int kSums = 4;  // as for tile_rows
#elif defined(__aarch64__)
  constexpr int kSums = 6;
#else
  constexpr int kSums = Lanes<Arch>::kParts == 1 ? 20 : 12 / Lanes<Arch>::kParts;
#endif
  return kSums / kRows < 8 ? kSums / kRows : 8;
}

/// The sums of the lanes of four, each in the order of sum().
template <class Arch>
QUANTRAIN_LANES void store_sums(const Lanes<Arch>* lanes, float* to) {
#if defined(__x86_64__)
  __m128 r[4];
  QUANTRAIN_UNROLL for (int i = 0; i < 4; ++i) {
    const auto& part = lanes[i].part;
    if constexpr (Lanes<Arch>::kParts == 4) {
      r[i] = (part[0] + part[2]) + (part[1] + part[3]);
    } else {
#if defined(__AVX2__)
      __m256 half;
#if defined(__AVX512DQ__)
      if constexpr (Lanes<Arch>::kParts == 1) {
        half = _mm256_add_ps(_mm512_castps512_ps256(part[0]), _mm512_extractf32x8_ps(part[0], 1));
      } else
#endif
        half = part[0] + part[1];
      r[i] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#endif
    }
  }
  const __m128 r01 = _mm_add_ps(_mm_movelh_ps(r[0], r[1]), _mm_movehl_ps(r[1], r[0]));
  const __m128 r23 = _mm_add_ps(_mm_movelh_ps(r[2], r[3]), _mm_movehl_ps(r[3], r[2]));
  _mm_storeu_ps(to, _mm_add_ps(_mm_shuffle_ps(r01, r23, 0x88), _mm_shuffle_ps(r01, r23, 0xdd)));
#else
  for (int i = 0; i < 4; ++i) to[i] = sum(lanes[i]);
#endif
}

/// Rows i to i + kRows x columns j to j + kColumns.
template <class Arch, int kRows, int kColumns>
void tile_of_dots_f32(const FewF32& p, int64_t i, int64_t j) {
  using L = Lanes<Arch>;
  using V = typename L::V;
  constexpr int kSums = (kRows * kColumns + 3) / 4 * 4;
  const float* a[kRows];
  const float* b[kColumns];
  QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) a[r] = p.a + (i + r) * p.a_step;
  QUANTRAIN_UNROLL for (int v = 0; v < kColumns; ++v) b[v] = p.b + (j + v) * p.b_step;
  L sums[kSums];
  QUANTRAIN_UNROLL for (int s = 0; s < kSums; ++s) sums[s] = L(0.0f);
  const auto add = [&](int part, const auto& load) __attribute__((always_inline)) {
    V left[kRows];
    QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) left[r] = load(a[r]);
    QUANTRAIN_UNROLL for (int v = 0; v < kColumns; ++v) {
      const V right = load(b[v]);
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
        V& sum = sums[v * kRows + r].part[part];
        sum = fused<Arch>(left[r], right, sum);
      }
    }
  };
  int64_t t = 0;
  for (; t + L::kWidth <= p.k; t += L::kWidth) {
    QUANTRAIN_UNROLL for (int part = 0; part < L::kParts; ++part) {
      add(
          part, [at = t + part * L::kEach](const float* from) __attribute__((always_inline)) {
            return V::load_unaligned(from + at);
          });
    }
  }
  QUANTRAIN_UNROLL for (int part = 0; part < L::kParts; ++part, t += L::kEach) {
    const int64_t left = p.k - t < L::kEach ? p.k - t : L::kEach;
    if (left <= 0) break;
    add(
        part, [ t, left ](const float* from) __attribute__((always_inline)) {
          return load_first<Arch>(from + t, left);
        });
  }
  float values[kSums];
  QUANTRAIN_UNROLL for (int s = 0; s < kSums; s += 4) store_sums(sums + s, values + s);
  float* c = p.c + i * p.c_step + j;
  QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r, c += p.c_step) {
    QUANTRAIN_UNROLL for (int v = 0; v < kColumns; ++v) {
      const float value = values[v * kRows + r];
      c[v] = p.accumulate ? value + c[v] : value;
    }
  }
}

/// Rows i to i + kRows x columns j to j + columns, columns <= kColumns.
template <class Arch, int kRows, int kColumns>
void columns_of_dots_f32(const FewF32& p, int64_t i, int64_t j, int64_t columns) {
  if constexpr (kColumns > 1) {
    if (columns < kColumns) {
      return columns_of_dots_f32<Arch, kRows, kColumns - 1>(p, i, j, columns);
    }
  }
  tile_of_dots_f32<Arch, kRows, kColumns>(p, i, j);
}

/// Rows i on to the last one in tiles of kRows, then of fewer; columns dealt to as few tiles as
/// hold them.
template <class Arch, int kRows>
void rows_of_dots_f32(const FewF32& p, int64_t i) {
  constexpr int kColumns = dot_columns<Arch, kRows>();
  const int64_t end = i + (p.m - i) / kRows * kRows;
  const int64_t tiles = (p.n + kColumns - 1) / kColumns;
  if (i < end) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t j = p.n * tile / tiles;
      const int64_t columns = p.n * (tile + 1) / tiles - j;
      for (int64_t row = i; row < end; row += kRows) {
        columns_of_dots_f32<Arch, kRows, kColumns>(p, row, j, columns);
      }
    }
  }
  if constexpr (kRows > 1) rows_of_dots_f32<Arch, kRows - 1>(p, end);
}

template <class Arch>
void dots_f32(const FewF32& p) {
  using V = Batch<float, Arch>;
  constexpr int64_t kLanes = V::size;
  constexpr float kInfinity = __builtin_inff();
  rows_of_dots_f32<Arch, kDotRows<Arch>>(p, 0);
  if (p.bias == nullptr && p.lo == -kInfinity && p.hi == kInfinity) return;
  const V lo(p.lo);
  const V hi(p.hi);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; j += kLanes) {
      const int64_t left = p.n - j < kLanes ? p.n - j : kLanes;
      float* const c = p.c + i * p.c_step + j;
      V sum = load_first<Arch>(c, left);
      if (p.bias != nullptr) sum = sum + load_first<Arch>(p.bias + j, left);
      // In this order of the operands a NaN stays NaN.
      store_first<Arch>(c, xsimd::min(hi, xsimd::max(lo, sum)), left);
    }
  }
}

#undef QUANTRAIN_UNROLL

}  // namespace quantrain::kernels::simd
