#pragma once

#include "framework/kernels/simd/batch.hpp"

// Transposes matrices whose elements have 4 bytes. Elements may have any type and alignment,
// because they are copied as bytes. Strides count elements.
namespace quantrain::kernels::simd {

inline constexpr int64_t kElementBytes = 4;

/// Number of rows that are transposed together, four elements of each row at a time.
template <class Arch>
inline constexpr int kTransposedRows = Arch::alignment() >= 32 ? 8 : 4;

/// Transposes four elements of each row, beginning at byte `at` of the row. Element j (0 to 3) of
/// every row goes to the same output row, which begins at to + j * to_step.
template <class Arch>
inline QUANTRAIN_INLINE void transpose_4(const unsigned char* const* rows,
                                         int64_t at,
                                         unsigned char* to,
                                         int64_t to_step) {
#if defined(__x86_64__)
  const auto load = [&](int row) QUANTRAIN_INLINE {
    __m128 v;
    __builtin_memcpy(&v, rows[row] + at, sizeof(v));
    return v;
  };
#endif
#if defined(__AVX__)
  if constexpr (kTransposedRows<Arch> == 8) {
    const auto store = [&](int j, __m256 v)
                           QUANTRAIN_INLINE { __builtin_memcpy(to + j * to_step, &v, sizeof(v)); };
    __m256 r[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(load(i)), load(i + 4), 1);
    }
    const __m256 low01 = _mm256_unpacklo_ps(r[0], r[1]);
    const __m256 high01 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 low23 = _mm256_unpacklo_ps(r[2], r[3]);
    const __m256 high23 = _mm256_unpackhi_ps(r[2], r[3]);
    store(0, _mm256_shuffle_ps(low01, low23, 0x44));
    store(1, _mm256_shuffle_ps(low01, low23, 0xee));
    store(2, _mm256_shuffle_ps(high01, high23, 0x44));
    store(3, _mm256_shuffle_ps(high01, high23, 0xee));
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
    const __m128 columns[4] = {r0, r1, r2, r3};
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) __builtin_memcpy(to + j * to_step, &columns[j], sizeof(r0));
    return;
  }
#endif
  for (int i = 0; i < kTransposedRows<Arch>; ++i) {
    for (int j = 0; j < 4; ++j) {
      __builtin_memcpy(
          to + j * to_step + i * kElementBytes, rows[i] + at + j * kElementBytes, kElementBytes);
    }
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows. For i from `rows` to the next
/// multiple of kTransposedRows, the last row is repeated.
template <class Arch>
void transpose_padded(int64_t rows,
                      int64_t columns,
                      const void* from,
                      int64_t from_stride,
                      void* to,
                      int64_t to_stride) {
  constexpr int64_t kRows = kTransposedRows<Arch>;
  const int64_t from_step = from_stride * kElementBytes;
  const int64_t to_step = to_stride * kElementBytes;
  const int64_t end = columns * kElementBytes;
  for (int64_t i = 0; i < rows; i += kRows) {
    const unsigned char* row[kRows];
    for (int64_t q = 0; q < kRows; ++q) {
      row[q] =
          static_cast<const unsigned char*>(from) + (i + q < rows ? i + q : rows - 1) * from_step;
    }
    unsigned char* column = static_cast<unsigned char*>(to) + i * kElementBytes;
    int64_t at = 0;
    for (; at + 4 * kElementBytes <= end; at += 4 * kElementBytes, column += 4 * to_step) {
      transpose_4<Arch>(row, at, column, to_step);
    }
    for (; at < end; at += kElementBytes, column += to_step) {
      for (int64_t q = 0; q < kRows; ++q) {
        __builtin_memcpy(column + q * kElementBytes, row[q] + at, kElementBytes);
      }
    }
  }
}

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows. Nothing else is written.
template <class Arch>
void transpose(int64_t rows,
               int64_t columns,
               const void* from,
               int64_t from_stride,
               void* to,
               int64_t to_stride) {
  const int64_t whole = rows / kTransposedRows<Arch> * kTransposedRows<Arch>;
  transpose_padded<Arch>(whole, columns, from, from_stride, to, to_stride);
  for (int64_t i = whole; i < rows; ++i) {
    const unsigned char* const row =
        static_cast<const unsigned char*>(from) + i * from_stride * kElementBytes;
    unsigned char* const column = static_cast<unsigned char*>(to) + i * kElementBytes;
    for (int64_t j = 0; j < columns; ++j) {
      __builtin_memcpy(
          column + j * to_stride * kElementBytes, row + j * kElementBytes, kElementBytes);
    }
  }
}

}  // namespace quantrain::kernels::simd
