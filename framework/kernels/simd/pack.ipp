#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/batch.hpp"

// What float products read: panels of a matrix, and matrices turned.
namespace quantrain::kernels::simd {

#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")

/// Width of a tile in vectors: with its rows it fills the registers and hides the latency of the
/// multiply-add.
template <class Arch>
inline constexpr int kTileVectors = Batch<float, Arch>::size == 16 ? 4 : 2;

/// Rows whose elements are turned together, four of each at a time.
template <class Arch>
inline constexpr int kTurned = Batch<float, Arch>::size >= 8 ? 8 : 4;

/// Element j of each row goes to to[j * to_stride], row after row, for j < 4.
template <class Arch>
inline __attribute__((always_inline)) void turn_4(const float* const* rows,
                                                  int64_t at,
                                                  float* to,
                                                  int64_t to_stride) {
#if defined(__AVX__)
  if constexpr (kTurned<Arch> == 8) {
    __m256 r[4];
    QUANTRAIN_UNROLL for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_insertf128_ps(
          _mm256_castps128_ps256(_mm_loadu_ps(rows[i] + at)), _mm_loadu_ps(rows[i + 4] + at), 1);
    }
    const __m256 low01 = _mm256_unpacklo_ps(r[0], r[1]);
    const __m256 high01 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 low23 = _mm256_unpacklo_ps(r[2], r[3]);
    const __m256 high23 = _mm256_unpackhi_ps(r[2], r[3]);
    _mm256_storeu_ps(to, _mm256_shuffle_ps(low01, low23, 0x44));
    _mm256_storeu_ps(to + to_stride, _mm256_shuffle_ps(low01, low23, 0xee));
    _mm256_storeu_ps(to + 2 * to_stride, _mm256_shuffle_ps(high01, high23, 0x44));
    _mm256_storeu_ps(to + 3 * to_stride, _mm256_shuffle_ps(high01, high23, 0xee));
    return;
  }
#endif
#if defined(__SSE__)
  if constexpr (kTurned<Arch> == 4) {
    __m128 r0 = _mm_loadu_ps(rows[0] + at);
    __m128 r1 = _mm_loadu_ps(rows[1] + at);
    __m128 r2 = _mm_loadu_ps(rows[2] + at);
    __m128 r3 = _mm_loadu_ps(rows[3] + at);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(to, r0);
    _mm_storeu_ps(to + to_stride, r1);
    _mm_storeu_ps(to + 2 * to_stride, r2);
    _mm_storeu_ps(to + 3 * to_stride, r3);
    return;
  }
#endif
  for (int i = 0; i < kTurned<Arch>; ++i) {
    for (int j = 0; j < 4; ++j) to[j * to_stride + i] = rows[i][at + j];
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows; also, with the last row once
/// more, from there on up to a multiple of kTurned.
template <class Arch>
void turn_f32(int64_t rows,
              int64_t columns,
              const float* from,
              int64_t from_stride,
              float* to,
              int64_t to_stride) {
  for (int64_t i = 0; i < rows; i += kTurned<Arch>) {
    const float* row[kTurned<Arch>];
    for (int64_t q = 0; q < kTurned<Arch>; ++q) {
      row[q] = from + (i + q < rows ? i + q : rows - 1) * from_stride;
    }
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) turn_4<Arch>(row, j, to + j * to_stride + i, to_stride);
    for (; j < columns; ++j) {
      for (int64_t q = 0; q < kTurned<Arch>; ++q) to[j * to_stride + i + q] = row[q][j];
    }
  }
}

template <class Arch>
void transpose_f32(int64_t rows,
                   int64_t columns,
                   const float* from,
                   int64_t from_stride,
                   float* to,
                   int64_t to_stride) {
  const int64_t whole = rows / kTurned<Arch> * kTurned<Arch>;
  turn_f32<Arch>(whole, columns, from, from_stride, to, to_stride);
  for (int64_t i = whole; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

/// Panels of kTileVectors vectors (the last may have fewer), one behind the other; each holds its k
/// rows densely. Lanes beyond the last column hold nothing of use.
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
    const int64_t whole = columns / kLanes * kLanes;
    if (p.col_stride == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < whole; j += kLanes) {
          V::load_unaligned(b + i * p.row_stride + j).store_unaligned(to + i * width + j);
        }
        if (whole < columns) {
          load_first<Arch>(b + i * p.row_stride + whole, columns - whole)
              .store_unaligned(to + i * width + whole);
        }
      }
      continue;
    }
    turn_f32<Arch>(columns, rows, b, p.col_stride, to, width);
  }
}

#undef QUANTRAIN_UNROLL

}  // namespace quantrain::kernels::simd
