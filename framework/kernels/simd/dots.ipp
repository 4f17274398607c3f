#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Products of few rows or columns whose operands are both contiguous along k. Sums run in 16 lanes
// along k, and the tree of sum() adds up the lanes. So nothing is transposed, and no lane is empty.
namespace quantrain::kernels::simd {

// gemm.ipp explains this option.
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/// Rows of a tile of dots_f32. dot_columns() returns the columns of a tile with kRows rows. A tile
/// has as many sums as the registers hold, but at most 12 columns. Each sum has 16 lanes.
template <class Arch>
inline constexpr int kDotRows = Lanes<Arch>::kParts == 1 ? 4 : 2;
template <class Arch, int kRows>
constexpr int dot_columns() {
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
  constexpr int kSums = 4;  // for the reason given at tile_rows in gemm.ipp
#elif defined(__aarch64__)
  constexpr int kSums = 6;
#else
  constexpr int kSums = Lanes<Arch>::kParts == 1 ? 20 : 12 / Lanes<Arch>::kParts;
#endif
  return kSums / kRows < 12 ? kSums / kRows : 12;
}

/// Sets to[i] = sum(lanes[i]) for i < 4. The additions have the same order as in sum().
template <class Arch>
inline QUANTRAIN_INLINE void store_4_sums(const Lanes<Arch>* lanes, float* to) {
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

/// Stores a tile's sums: to[at(r, v)] = sum(lanes[v * kRows + r]) for row r and column v.
template <class Arch, int kRows, int kColumns>
struct SumsF32 {
  // How many sums of a row lie side by side in `to`.
  static constexpr int kWidth = kRows == 1 ? kColumns : 1;
  static constexpr int kCount = (kRows * kColumns + 3) / 4 * 4;
  static constexpr int at(int r, int v) { return v * kRows + r; }
  static QUANTRAIN_INLINE void store(const Lanes<Arch>* lanes, float* to) {
    QUANTRAIN_UNROLL for (int s = 0; s < kCount; s += 4) store_4_sums(lanes + s, to + s);
  }
};

#if defined(__AVX512DQ__)
/// Computes 16 sums at once, with kWidth columns of each row side by side. This takes half the
/// instructions of store_4_sums, and the additions have the same order. If there are fewer than 16
/// sums, copies of some sums fill the remaining places.
template <class Arch, int kRows, int kColumns>
requires(kRows > 1) struct SumsF32<Arch, kRows, kColumns> {
  static constexpr int kWidth = kRows == 2 ? 8 : 4;
  static constexpr int kCount = (kColumns + kWidth - 1) / kWidth * 16;
  static constexpr int at(int r, int v) { return v / kWidth * 16 + r * kWidth + v % kWidth; }
  static QUANTRAIN_INLINE void store(const Lanes<Arch>* lanes, float* to) {
    QUANTRAIN_UNROLL for (int s = 0; s < kCount; s += 16) {
      __m512 quarters[4];  // lanes 4 j to 4 j + 3 of quarters[i] belong to sum s + 4 j + i
      QUANTRAIN_UNROLL for (int i = 0; i < 4; ++i) {
        __m512 of[4];
        QUANTRAIN_UNROLL for (int j = 0; j < 4; ++j) {
          const int r = (4 * j + i) / kWidth;
          const int v = s / 16 * kWidth + (4 * j + i) % kWidth;
          const int column = v < kColumns ? v : kColumns - 1;
          of[j] = lanes[column * kRows + (r < kRows ? r : kRows - 1)].part[0];
        }
        const __m512 low = _mm512_add_ps(_mm512_shuffle_f32x4(of[0], of[1], 0x44),
                                         _mm512_shuffle_f32x4(of[0], of[1], 0xee));
        const __m512 high = _mm512_add_ps(_mm512_shuffle_f32x4(of[2], of[3], 0x44),
                                          _mm512_shuffle_f32x4(of[2], of[3], 0xee));
        quarters[i] = _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88),
                                    _mm512_shuffle_f32x4(low, high, 0xdd));
      }
      const __m512 low = _mm512_add_ps(_mm512_shuffle_ps(quarters[0], quarters[1], 0x44),
                                       _mm512_shuffle_ps(quarters[0], quarters[1], 0xee));
      const __m512 high = _mm512_add_ps(_mm512_shuffle_ps(quarters[2], quarters[3], 0x44),
                                        _mm512_shuffle_ps(quarters[2], quarters[3], 0xee));
      _mm512_storeu_ps(
          to + s,
          _mm512_add_ps(_mm512_shuffle_ps(low, high, 0x88), _mm512_shuffle_ps(low, high, 0xdd)));
    }
  }
};
#endif

/// Computes rows [i, i_end) x columns [j, j_end) in tiles of kRows x kColumns.
template <class Arch, int kRows, int kColumns>
void tiles_of_dots_f32(const FewF32& p, int64_t i, int64_t i_end, int64_t j, int64_t j_end) {
  using L = Lanes<Arch>;
  using V = typename L::V;
  using Sums = SumsF32<Arch, kRows, kColumns>;
  constexpr int kSums = (kRows * kColumns + 3) / 4 * 4;
  const float* column = p.b + j * p.b_step;
  for (; j < j_end; j += kColumns, column += kColumns * p.b_step) {
    const float* row = p.a + i * p.a_step;
    for (int64_t first = i; first < i_end; first += kRows, row += kRows * p.a_step) {
      const float* a[kRows];
      a[0] = row;
      QUANTRAIN_UNROLL for (int r = 1; r < kRows; ++r) a[r] = a[r - 1] + p.a_step;
      const float* b[kColumns];
      b[0] = column;
      QUANTRAIN_UNROLL for (int v = 1; v < kColumns; ++v) b[v] = b[v - 1] + p.b_step;
      L sums[kSums];
      QUANTRAIN_UNROLL for (int s = 0; s < kSums; ++s) sums[s] = L(0.0f);
      const auto add = [&](int part, const auto& load) QUANTRAIN_INLINE {
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
      const int64_t k = p.k;
      int64_t t = 0;
      for (; t + L::kWidth <= k; t += L::kWidth) {
        QUANTRAIN_UNROLL for (int part = 0; part < L::kParts; ++part) {
          add(part, [at = t + part * L::kEach](const float* from) QUANTRAIN_INLINE {
            return V::load_unaligned(from + at);
          });
        }
      }
      QUANTRAIN_UNROLL for (int part = 0; part < L::kParts; ++part, t += L::kEach) {
        const int64_t left = k - t < L::kEach ? k - t : L::kEach;
        if (left <= 0) break;
        add(part, [t, left](const float* from) QUANTRAIN_INLINE {
          return load_first<Arch>(from + t, left);
        });
      }
      float* c = p.c + first * p.c_step + j;
      if (kRows == 1 && kColumns % 4 == 0 && !p.accumulate) {
        Sums::store(sums, c);
        continue;
      }
      float values[Sums::kCount];
      Sums::store(sums, values);
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r, c += p.c_step) {
        if (p.accumulate) {
          QUANTRAIN_UNROLL for (int v = 0; v < kColumns; ++v) c[v] = values[Sums::at(r, v)] + c[v];
        } else {
          QUANTRAIN_UNROLL for (int v = 0; v < kColumns; v += Sums::kWidth) {
            const int width = kColumns - v < Sums::kWidth ? kColumns - v : Sums::kWidth;
            __builtin_memcpy(c + v, values + Sums::at(r, v), static_cast<size_t>(width) * 4);
          }
        }
      }
    }
  }
}

/// The kernels for tiles with kRows rows and 1 to kColumns columns.
template <class Arch, int kRows>
struct DotKernelsF32 {
  static constexpr int kColumns = dot_columns<Arch, kRows>();
  using Kernel = void (*)(const FewF32&, int64_t, int64_t, int64_t, int64_t);
  Kernel of_columns[kColumns];

  constexpr DotKernelsF32() : of_columns() { add<kColumns>(); }
  template <int kUpTo>
  constexpr void add() {
    of_columns[kUpTo - 1] = tiles_of_dots_f32<Arch, kRows, kUpTo>;
    if constexpr (kUpTo > 1) add<kUpTo - 1>();
  }
};

/// Computes rows [i, end) in tiles of equal width. Only the tiles of the last columns may be
/// narrower. end - i is a positive multiple of kRows.
template <class Arch, int kRows>
void rows_of_dots_f32(const FewF32& p, int64_t i, int64_t end) {
  static constexpr DotKernelsF32<Arch, kRows> kKernels;
  if (p.n <= kKernels.kColumns) return kKernels.of_columns[p.n - 1](p, i, end, 0, p.n);
  // If there are many columns, at most 8 are read at a time. More would be too many streams from
  // memory.
  constexpr int64_t kMany = kKernels.kColumns < 8 ? kKernels.kColumns : 8;
  const int64_t tiles = (p.n + kMany - 1) / kMany;
  const int64_t width = (p.n + tiles - 1) / tiles;
  const int64_t left = p.n % width;
  kKernels.of_columns[width - 1](p, i, end, 0, p.n - left);
  if (left > 0) kKernels.of_columns[left - 1](p, i, end, p.n - left, p.n);
}

/// Computes the last rows: row i and all rows after it. There are fewer than kRows of them.
template <class Arch, int kRows>
void last_rows_of_dots_f32(const FewF32& p, int64_t i) {
  if constexpr (kRows > 1) {
    if (p.m - i < kRows - 1) return last_rows_of_dots_f32<Arch, kRows - 1>(p, i);
    rows_of_dots_f32<Arch, kRows - 1>(p, i, p.m);
  }
}

template <class Arch>
void dots_f32(const FewF32& p) {
  if (p.n == 0) return;
  using V = Batch<float, Arch>;
  constexpr int64_t kLanes = V::size;
  constexpr float kInfinity = __builtin_inff();
  const int64_t whole = p.m / kDotRows<Arch> * kDotRows<Arch>;
  if (whole > 0) rows_of_dots_f32<Arch, kDotRows<Arch>>(p, 0, whole);
  if (whole < p.m) last_rows_of_dots_f32<Arch, kDotRows<Arch>>(p, whole);
  if (p.bias == nullptr && p.lo == -kInfinity && p.hi == kInfinity) return;
  const V lo(p.lo);
  const V hi(p.hi);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; j += kLanes) {
      const int64_t left = p.n - j < kLanes ? p.n - j : kLanes;
      float* const c = p.c + i * p.c_step + j;
      V sum = load_first<Arch>(c, left);
      if (p.bias != nullptr) sum = sum + load_first<Arch>(p.bias + j, left);
      // With the operands in this order, a NaN stays NaN.
      store_first<Arch>(c, xsimd::min(hi, xsimd::max(lo, sum)), left);
    }
  }
}

#if !defined(__clang__)
#pragma GCC pop_options
#endif

}  // namespace quantrain::kernels::simd
