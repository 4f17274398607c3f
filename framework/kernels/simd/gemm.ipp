#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/batch.hpp"

// The one loop nest behind every float product. A tile of rows x vectors of the result stays in
// registers; lanes run along the columns, so there are no sums across lanes and each result is one
// chain of fused multiply-adds.
namespace quantrain::kernels::simd {

// Tiles are arrays of vectors: only loops that are unrolled whole keep them in registers.
#define QUANTRAIN_UNROLL _Pragma("GCC unroll 16")

/// Width of a tile in vectors: with its rows it fills the registers and hides the latency of the
/// multiply-add.
template <class Arch>
inline constexpr int kTileVectors = Batch<float, Arch>::size == 16 ? 4 : 2;

template <class Arch>
constexpr int tile_rows(int vectors) {
  if (Batch<float, Arch>::size == 16) return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  return Batch<float, Arch>::size == 8 ? 6 : 4;
}

template <class Arch>
void transpose4(const float* from, int64_t stride, float* to, int64_t to_stride) {
#if defined(__SSE__)
  __m128 r0 = _mm_loadu_ps(from);
  __m128 r1 = _mm_loadu_ps(from + stride);
  __m128 r2 = _mm_loadu_ps(from + 2 * stride);
  __m128 r3 = _mm_loadu_ps(from + 3 * stride);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(to, r0);
  _mm_storeu_ps(to + to_stride, r1);
  _mm_storeu_ps(to + 2 * to_stride, r2);
  _mm_storeu_ps(to + 3 * to_stride, r3);
#else
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) to[i * to_stride + j] = from[j * stride + i];
  }
#endif
}

/// Panels of kTileVectors vectors (the last may have fewer), one behind the other; each holds its k
/// rows densely. Lanes beyond the last column are 0.
template <class Arch>
void pack_f32(const PackF32& p) {
  using V = Batch<float, Arch>;
  constexpr int64_t kLanes = V::size;
  constexpr int64_t kWidth = kTileVectors<Arch> * kLanes;
  const int64_t rows = p.k_end - p.k_begin;
  for (int64_t first = 0; first < p.n; first += kWidth) {
    const int64_t columns = p.n - first < kWidth ? p.n - first : kWidth;
    const int64_t width = (columns + kLanes - 1) / kLanes * kLanes;
    float* const to = p.to + first * p.k + p.k_begin * width;
    const float* const b = p.b + first * p.col_stride;
    int64_t j = 0;
    if (p.col_stride == 1) {
      for (; j + kLanes <= columns; j += kLanes) {
        for (int64_t i = 0; i < rows; ++i) {
          V::load_unaligned(b + i * p.row_stride + j).store_unaligned(to + i * width + j);
        }
      }
    } else if (p.row_stride == 1) {
      for (; j + 4 <= columns; j += 4) {
        int64_t i = 0;
        for (; i + 4 <= rows; i += 4) {
          transpose4<Arch>(b + j * p.col_stride + i, p.col_stride, to + i * width + j, width);
        }
        for (; i < rows; ++i) {
          for (int64_t q = j; q < j + 4; ++q) to[i * width + q] = b[q * p.col_stride + i];
        }
      }
    }
    for (; j < width; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        to[i * width + j] = j < columns ? b[i * p.row_stride + j * p.col_stride] : 0.0f;
      }
    }
  }
}

/// Rows [i, i + kRows) of kVectors vectors of columns, of which the last may be part of one.
template <class Arch, int kRows, int kVectors>
void tile_f32(const TilesF32& p,
              int64_t i,
              const float* b,
              int64_t b_step,
              int64_t b_segment,
              int64_t first,
              int64_t columns) {
  using V = Batch<float, Arch>;
  constexpr int kLanes = static_cast<int>(V::size);
  constexpr int kWidth = kVectors * kLanes;
  float* c = p.c + i * p.c_stride + first;
  int64_t c_stride = p.c_stride;
  // A tile that sticks out of the result is worked on in a copy.
  float edge[kRows * kWidth];
  if (columns < kWidth) {
    for (int r = 0; r < kRows; ++r) {
      for (int64_t j = 0; j < kWidth; ++j) {
        edge[r * kWidth + j] = p.accumulate && j < columns ? c[r * c_stride + j] : 0.0f;
      }
    }
    c = edge;
    c_stride = kWidth;
  }

  V sum[kRows][kVectors];
  if (p.accumulate) {
    QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = V::load_unaligned(c + r * c_stride + v * kLanes);
      }
    }
  } else {
    QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) sum[r][v] = V(0.0f);
    }
  }
  const float* a[kRows];
  QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) a[r] = p.a[i + r] + p.a_begin;
  for (int64_t s = 0; s < p.segments; ++s) {
    const int64_t end = s * p.a_segment + p.length * p.a_step;
    const float* row = b + s * b_segment;
    for (int64_t k = s * p.a_segment; k < end; k += p.a_step, row += b_step) {
      V vectors[kVectors];
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) vectors[v] =
          V::load_unaligned(row + v * kLanes);
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
        const V factor(a[r][k]);
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
          sum[r][v] = fused<Arch>(factor, vectors[v], sum[r][v]);
        }
      }
    }
  }

  float bias[kWidth] = {};
  if (p.bias != nullptr) {
    for (int64_t j = 0; j < columns; ++j) bias[j] = p.bias[first + j];
  }
  const V lo(p.lo);
  const V hi(p.hi);
  QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
    const V shift = V::load_unaligned(bias + v * kLanes);
    QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
      // In this order of the operands a NaN stays NaN.
      const V y = xsimd::min(hi, xsimd::max(lo, sum[r][v] + shift));
      y.store_unaligned(c + r * c_stride + v * kLanes);
    }
  }
  if (columns < kWidth) {
    for (int r = 0; r < kRows; ++r) {
      for (int64_t j = 0; j < columns; ++j)
        p.c[(i + r) * p.c_stride + first + j] = edge[r * kWidth + j];
    }
  }
}

/// Rows from i on in tiles of kRows, what is left in smaller ones.
template <class Arch, int kRows, int kVectors>
void row_tiles_f32(const TilesF32& p,
                   int64_t i,
                   const float* b,
                   int64_t b_step,
                   int64_t b_segment,
                   int64_t first,
                   int64_t columns) {
  for (; i + kRows <= p.m; i += kRows) {
    tile_f32<Arch, kRows, kVectors>(p, i, b, b_step, b_segment, first, columns);
  }
  constexpr int kFewer = kRows > 8 ? 8 : kRows > 4 ? 4 : kRows / 2;
  if constexpr (kFewer > 0) {
    if (i < p.m) row_tiles_f32<Arch, kFewer, kVectors>(p, i, b, b_step, b_segment, first, columns);
  }
}

template <class Arch>
void tiles_f32(const TilesF32& p) {
  constexpr int64_t kLanes = Batch<float, Arch>::size;
  constexpr int kVectors = kTileVectors<Arch>;
  for (int64_t first = 0; first < p.n; first += kVectors * kLanes) {
    const int64_t columns = p.n - first < kVectors * kLanes ? p.n - first : kVectors * kLanes;
    const int64_t vectors = (columns + kLanes - 1) / kLanes;
    const bool packed = p.b_step == 0;
    const float* const b = packed ? p.b + first * p.segments * p.length : p.b + first;
    const int64_t b_step = packed ? vectors * kLanes : p.b_step;
    const int64_t b_segment = packed ? b_step * p.length : p.b_segment;
    if (vectors == kVectors) {
      row_tiles_f32<Arch, tile_rows<Arch>(kVectors), kVectors>(
          p, 0, b, b_step, b_segment, first, columns);
    } else if (vectors == 1) {
      row_tiles_f32<Arch, tile_rows<Arch>(1), 1>(p, 0, b, b_step, b_segment, first, columns);
    } else if constexpr (kVectors == 4) {
      if (vectors == 2) {
        row_tiles_f32<Arch, tile_rows<Arch>(2), 2>(p, 0, b, b_step, b_segment, first, columns);
      } else {
        row_tiles_f32<Arch, tile_rows<Arch>(3), 3>(p, 0, b, b_step, b_segment, first, columns);
      }
    }
  }
}

#undef QUANTRAIN_UNROLL

}  // namespace quantrain::kernels::simd
