#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/batch.hpp"

// The one loop nest behind every float product. A tile of rows x vectors of the result stays in
// registers; lanes run along the columns, so there are no sums across lanes and each result is one
// chain of fused multiply-adds.
namespace quantrain::kernels::simd {

// Tiles are arrays of vectors: only loops that are unrolled whole keep them in registers.
#define QUANTRAIN_UNROLL _Pragma("GCC unroll 32")
#define QUANTRAIN_ROW inline __attribute__((always_inline))

/// Width of a tile in vectors: with its rows it fills the registers and hides the latency of the
/// multiply-add.
template <class Arch>
inline constexpr int kTileVectors = Batch<float, Arch>::size == 16 ? 4 : 2;

/// Rows of a that lie kStep = 1 or 2 elements apart are read through one pointer. Else kStep is 0
/// and each has its own: more than 9 find no registers and would be loaded at each step.
template <class Arch, int kVectors, int kStep>
constexpr int tile_rows() {
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
  return kVectors == 1 ? 4 : 2;  // with every access checked, GCC 12 takes minutes for whole tiles
#endif
  constexpr int64_t kLanes = Batch<float, Arch>::size;
  constexpr int kSums = kLanes == 16 ? (kStep > 0 && kVectors < 4 ? 28 : 24) : kLanes == 8 ? 12 : 8;
  constexpr int kRows = kSums / kVectors;
  constexpr int kPointers = kVectors == 1 ? 8 : 9;
  return kStep == 0 && kRows > kPointers ? kPointers : kRows;
}

/// Rows whose elements are turned together, four of each at a time.
template <class Arch>
inline constexpr int kTurned = Batch<float, Arch>::size >= 8 ? 8 : 4;

/// Element j of each row goes to to[j * to_stride], row after row, for j < 4.
template <class Arch>
QUANTRAIN_ROW void turn_4(const float* const* rows, int64_t at, float* to, int64_t to_stride) {
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

/// `tiles` tiles of kRows rows x kVectors vectors of columns from row i of each run on; of the last
/// vector the columns may be but a part. Where kStep is not 0, there are no pointers to rows, which
/// lie kStep elements apart in a.
template <class Arch, int kRows, int kVectors, int kStep>
void tiles_of_rows_f32(const TilesF32& p,
                       int64_t i,
                       int64_t tiles,
                       const float* b,
                       int64_t b_step,
                       int64_t first,
                       int64_t columns) {
  using V = Batch<float, Arch>;
  constexpr int kLanes = static_cast<int>(V::size);
  constexpr int kLast = (kVectors - 1) * kLanes;
  constexpr float kInfinity = __builtin_inff();
  const int64_t in_last = columns - kLast;
  const auto load = [in_last](const float* from, int v) __attribute__((always_inline)) {
    if (v + 1 == kVectors && in_last < kLanes) return load_first<Arch>(from + kLast, in_last);
    return V::load_unaligned(from + v * kLanes);
  };

  int64_t run = 0;
  int64_t tile = 0;
  while (run < p.runs) {
    const int64_t row = i + tile * kRows;
    float* c[kRows];
    const auto find_c = [&]() __attribute__((always_inline)) {
      const RowsF32<float> rows = p.c;
      const int64_t column = p.column + first;
      if (kStep == 0 && rows.rows != nullptr) {
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) c[r] = rows.rows[row + r] + column;
      } else {
        float* next = rows.first + run * rows.run_step + row * rows.row_step + column;
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r, next += rows.row_step) c[r] = next;
      }
    };

    V sum[kRows][kVectors];
    if (p.accumulate) {
      find_c();
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) sum[r][v] = load(c[r], v);
      }
    } else {
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) sum[r][v] = V(0.0f);
      }
    }
    const float* a[kRows];
    if (kStep == 0 && p.a.rows != nullptr) {
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) a[r] = p.a.rows[row + r];
    } else {
      const int64_t row_step = kStep > 0 ? kStep : p.a.row_step;
      a[0] = p.a.first + run * p.a.run_step + row * row_step;
      QUANTRAIN_UNROLL for (int r = 1; r < kRows; ++r) a[r] = a[r - 1] + row_step;
    }
    // Rows that lie behind each other are too short for the processor to see where they lead.
    const float* next = p.a.rows == nullptr ? a[kRows - 1] + p.a.row_step : a[0];
    const int64_t a_step = p.a_step;
    const SegmentF32* const segments_end = p.segment + p.segments;
    for (const SegmentF32* segment = p.segment; segment != segments_end; ++segment) {
      const float* from = b + segment->b * (p.b_step == 0 ? b_step : 1);
      const int64_t begin = segment->a;
      const int64_t end = begin + p.length * a_step;
      for (int64_t k = begin; k != end; k += a_step, from += b_step) {
        V vectors[kVectors];
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
          vectors[v] = V::load_unaligned(from + v * kLanes);
        }
        if (kStep == 0) {
          __builtin_prefetch(next, 0, 2);
          next += kRows;
        }
        const float* const near = a[0] + k;
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
          const V factor(kStep > 0 ? near[r * kStep] : a[r][k]);
          QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
            sum[r][v] = fused<Arch>(factor, vectors[v], sum[r][v]);
          }
        }
      }
    }

    if (p.bias != nullptr) {
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
        const V bias = load(p.bias + first, v);
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) sum[r][v] = sum[r][v] + bias;
      }
    }
    if (p.lo != -kInfinity || p.hi != kInfinity) {
      const V lo(p.lo);
      const V hi(p.hi);
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
          // In this order of the operands a NaN stays NaN.
          sum[r][v] = xsimd::min(hi, xsimd::max(lo, sum[r][v]));
        }
      }
    }
    find_c();
    QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors - 1; ++v) {
        sum[r][v].store_unaligned(c[r] + v * kLanes);
      }
      if (in_last < kLanes) {
        store_first<Arch>(c[r] + kLast, sum[r][kVectors - 1], in_last);
      } else {
        sum[r][kVectors - 1].store_unaligned(c[r] + kLast);
      }
    }
    if (++tile == tiles) {
      tile = 0;
      ++run;
    }
  }
}

/// Calls the one for `rows` <= kRows.
template <class Arch, int kRows, int kVectors, int kStep>
void tiles_of_rows_f32(int64_t rows,
                       const TilesF32& p,
                       int64_t i,
                       int64_t tiles,
                       const float* b,
                       int64_t b_step,
                       int64_t first,
                       int64_t columns) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      return tiles_of_rows_f32<Arch, kRows - 1, kVectors, kStep>(
          rows, p, i, tiles, b, b_step, first, columns);
    }
  }
  tiles_of_rows_f32<Arch, kRows, kVectors, kStep>(p, i, tiles, b, b_step, first, columns);
}

/// All rows, those of a run dealt to as few tiles as they fit in, each with as many as the others
/// or one more.
template <class Arch, int kVectors, int kStep>
void row_tiles_f32(
    const TilesF32& p, const float* b, int64_t b_step, int64_t first, int64_t columns) {
  constexpr int kRows = tile_rows<Arch, kVectors, kStep>();
  const int64_t tiles = (p.m + kRows - 1) / kRows;
  if (tiles == 0) return;
  const int64_t rows = p.m / tiles;
  const int64_t larger = p.m % tiles;
  if (larger > 0) {
    tiles_of_rows_f32<Arch, kRows, kVectors, kStep>(
        rows + 1, p, 0, larger, b, b_step, first, columns);
  }
  tiles_of_rows_f32<Arch, kRows, kVectors, kStep>(
      rows, p, larger * (rows + 1), tiles - larger, b, b_step, first, columns);
}

template <class Arch, int kVectors>
void columns_f32(
    const TilesF32& p, const float* b, int64_t b_step, int64_t first, int64_t columns) {
  if (p.a.rows == nullptr && p.a.row_step == 1) {
    return row_tiles_f32<Arch, kVectors, 1>(p, b, b_step, first, columns);
  }
  if constexpr (kVectors <= 2) {
    if (p.a.rows == nullptr && p.a.row_step == 2) {
      return row_tiles_f32<Arch, kVectors, 2>(p, b, b_step, first, columns);
    }
  }
  row_tiles_f32<Arch, kVectors, 0>(p, b, b_step, first, columns);
}

template <class Arch>
void tiles_f32(const TilesF32& p) {
  constexpr int64_t kLanes = Batch<float, Arch>::size;
  constexpr int kVectors = kTileVectors<Arch>;
  for (int64_t first = 0; first < p.n; first += kVectors * kLanes) {
    const int64_t columns = p.n - first < kVectors * kLanes ? p.n - first : kVectors * kLanes;
    const int64_t vectors = (columns + kLanes - 1) / kLanes;
    const bool packed = p.b_step == 0;
    const float* const b = p.b + first * (packed ? p.b_rows : 1);
    const int64_t b_step = packed ? vectors * kLanes : p.b_step;
    if (vectors == kVectors) {
      columns_f32<Arch, kVectors>(p, b, b_step, first, columns);
    } else if (vectors == 1) {
      columns_f32<Arch, 1>(p, b, b_step, first, columns);
    } else if constexpr (kVectors == 4) {
      if (vectors == 2) {
        columns_f32<Arch, 2>(p, b, b_step, first, columns);
      } else {
        columns_f32<Arch, 3>(p, b, b_step, first, columns);
      }
    }
  }
}

#undef QUANTRAIN_ROW
#undef QUANTRAIN_UNROLL

}  // namespace quantrain::kernels::simd
