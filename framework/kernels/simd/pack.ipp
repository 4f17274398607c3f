#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/batch.hpp"
#include "framework/kernels/simd/transpose.ipp"

// Prepares the operands of float products: packs panels and transposes matrices.
namespace quantrain::kernels::simd {

/// Width of a tile in vectors. Width and height (tile_rows in gemm.ipp) are chosen so that the sums
/// fill the registers and hide the latency of the multiply-add.
template <class Arch>
inline constexpr int kTileVectors = kRegisters<Arch> == 32 ? 4 : 2;

template <class Arch>
void transpose_f32(int64_t rows,
                   int64_t columns,
                   const float* from,
                   int64_t from_stride,
                   float* to,
                   int64_t to_stride) {
  transpose<Arch>(rows, columns, from, from_stride, to, to_stride);
}

/// Packs strips of kTileVectors vectors, one after the other. The last strip may have fewer
/// vectors. Each strip holds its k rows without gaps. Lanes past the last column are undefined.
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
    transpose_padded<Arch>(columns, rows, b, p.col_stride, to, width);
  }
}

}  // namespace quantrain::kernels::simd
