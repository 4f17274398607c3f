#pragma once

#include "framework/kernels/simd/batch.hpp"

// Transposes matrices whose elements have 4 bytes, of whatever type: T is float, or Word.
namespace quantrain::kernels::simd {

/// Four bytes of any type, without alignment.
struct Word {
  unsigned char byte[4];
};

/// Rows that are transposed together, four elements of each at a time.
template <class Arch>
inline constexpr int kTransposedRows = Arch::alignment() >= 32 ? 8 : 4;

/// Element at + j of each row goes to to[j * to_stride], row after row, for j < 4.
template <class Arch, class T>
inline QUANTRAIN_INLINE void transpose_4(const T* const* rows,
                                         int64_t at,
                                         T* to,
                                         int64_t to_stride) {
  static_assert(sizeof(T) == 4);
#if defined(__x86_64__)
  const auto load = [&](int row) QUANTRAIN_INLINE {
    return _mm_loadu_ps(reinterpret_cast<const float*>(rows[row] + at));
  };
  const auto column = [&](int j)
                          QUANTRAIN_INLINE { return reinterpret_cast<float*>(to + j * to_stride); };
#endif
#if defined(__AVX__)
  if constexpr (kTransposedRows<Arch> == 8) {
    __m256 r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(load(i)), load(i + 4), 1);
    }
    const __m256 low01 = _mm256_unpacklo_ps(r[0], r[1]);
    const __m256 high01 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 low23 = _mm256_unpacklo_ps(r[2], r[3]);
    const __m256 high23 = _mm256_unpackhi_ps(r[2], r[3]);
    _mm256_storeu_ps(column(0), _mm256_shuffle_ps(low01, low23, 0x44));
    _mm256_storeu_ps(column(1), _mm256_shuffle_ps(low01, low23, 0xee));
    _mm256_storeu_ps(column(2), _mm256_shuffle_ps(high01, high23, 0x44));
    _mm256_storeu_ps(column(3), _mm256_shuffle_ps(high01, high23, 0xee));
    return;
  }
#endif
#if defined(__x86_64__)
  if constexpr (kTransposedRows<Arch> == 4) {
    __m128 r0 = load(0);
    __m128 r1 = load(1);
    __m128 r2 = load(2);
    __m128 r3 = load(3);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(column(0), r0);
    _mm_storeu_ps(column(1), r1);
    _mm_storeu_ps(column(2), r2);
    _mm_storeu_ps(column(3), r3);
    return;
  }
#endif
  for (int i = 0; i < kTransposedRows<Arch>; ++i) {
    for (int j = 0; j < 4; ++j) to[j * to_stride + i] = rows[i][at + j];
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows; also, with the last row once
/// more, from there on up to a multiple of kTransposedRows.
template <class Arch, class T>
void transpose_padded(
    int64_t rows, int64_t columns, const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  constexpr int64_t kRows = kTransposedRows<Arch>;
  for (int64_t i = 0; i < rows; i += kRows) {
    const T* row[kRows];
    for (int64_t q = 0; q < kRows; ++q) {
      row[q] = from + (i + q < rows ? i + q : rows - 1) * from_stride;
    }
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) transpose_4<Arch>(row, j, to + j * to_stride + i, to_stride);
    for (; j < columns; ++j) {
      for (int64_t q = 0; q < kRows; ++q) to[j * to_stride + i + q] = row[q][j];
    }
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, and nothing else.
template <class Arch, class T>
void transpose(
    int64_t rows, int64_t columns, const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  const int64_t whole = rows / kTransposedRows<Arch> * kTransposedRows<Arch>;
  transpose_padded<Arch>(whole, columns, from, from_stride, to, to_stride);
  for (int64_t i = whole; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace quantrain::kernels::simd
