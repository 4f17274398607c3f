#pragma once

#include <algorithm>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/gemm.hpp"
#include "framework/kernels/float/partial_sums.hpp"
#include "framework/kernels/float/tiles.hpp"

// What all forms of a matrix product share: how sums are split, and the loop over tiles.
namespace quantrain::kernels {

// A chain is a run of additions into one accumulator; a sum has one or more chains. The rounding
// error of a chain grows with its length. So if the chains of a sum would have more than
// kLongestChain terms, the sum is split into blocks. The chains of a block have at most half
// as many terms as kLongestChain. The blocks are added up in c. A block's panel of B stays in the
// second-level cache.
inline constexpr int64_t kLongestChain = 1024;
// A sum of more than kLongestChunk terms is split into chunks, which are summed separately. This
// keeps the chain that adds up blocks short. Each chunk is also a task.
inline constexpr int64_t kLongestChunk = 32768;
// The fewest multiply-adds that make a task worthwhile.
inline constexpr int64_t kTaskWork = 500000;

/// c = a * B, then the epilogue. c is [m, n], and its rows are c_stride apart.
struct Product {
  int64_t m, n;
  const MatrixF32& a;
  float* c;
  int64_t c_stride;
  const EpilogueF32& epilogue;
};

/// The terms [begin, end) of a sum.
struct Terms {
  int64_t count() const { return end - begin; }

  int64_t begin, end;
};

/// A block of rows of B, restricted to columns [column, column + columns). If step is 0, the rows
/// are packed. Otherwise they are read in place and are `step` elements apart.
struct PanelF32 {
  int64_t column, columns;
  const float* data;
  int64_t step;
  bool fetches_next;
};

/// The number of terms in each chunk of a sum of k terms. The last chunk may have fewer.
inline int64_t chunk_terms(int64_t k) {
  if (k <= kLongestChunk) return k;
  const int64_t chunks = (k + kLongestChunk - 1) / kLongestChunk;
  return (k + chunks - 1) / chunks;
}

/// Calls f(block, first, last) for each block of the terms k. `first` and `last` tell whether the
/// block is the first one and whether it is the last one. If there are at most `longest` terms,
/// even none, they form one block. Otherwise, they are split into blocks of about equal size, each
/// with at most half of `longest`, rounded up.
template <class F>
void for_blocks(Terms k, int64_t longest, F&& f) {
  // Returns before the divisions. One division takes as long as a small product.
  if (k.count() <= longest) return f(k, true, true);
  const int64_t blocks = (2 * k.count() + longest - 1) / longest;
  const int64_t size = (k.count() + blocks - 1) / blocks;
  for (int64_t begin = k.begin; begin < k.end; begin += size) {
    const int64_t end = std::min(k.end, begin + size);
    f(Terms{begin, end}, begin == k.begin, end == k.end);
  }
}

/// Parameters of the kernel call that computes rows [row, row_end) of p in the columns of a panel,
/// over the terms that `segment` and `length` select. `first` and `last` tell whether these terms
/// begin and end the sum.
inline TilesF32 tiles_of(const Product& p,
                         int64_t row,
                         int64_t row_end,
                         const PanelF32& panel,
                         const SegmentF32& segment,
                         int64_t length,
                         bool first,
                         bool last) {
  // The struct is not cleared first, because that takes longer than a tile of a small product.
  TilesF32 tiles;
  tiles.m = row_end - row;
  tiles.n = panel.columns;
  tiles.runs = 1;
  tiles.segments = 1;
  tiles.length = length;
  tiles.segment = &segment;
  tiles.a = {nullptr, p.a.data + row * p.a.row_stride, p.a.row_stride, 0};
  tiles.a_step = p.a.col_stride;
  tiles.b = panel.data;
  tiles.b_rows = length;
  tiles.b_step = panel.step;
  tiles.c = {nullptr, p.c + row * p.c_stride, p.c_stride, 0};
  tiles.column = panel.column;
  tiles.fetches_next = panel.fetches_next;
  set_epilogue(tiles, p.epilogue, panel.column, first, last);
  return tiles;
}

/// Adds up the terms k of the sums in rows [row, row_end) and panels [panel, panel_end) of p, in
/// blocks of up to `longest` terms. panel_of(block, column, columns) -> PanelF32 finds or packs a
/// block's part of B.
template <class PanelOf>
void multiply_tiles(const Product& p,
                    int64_t row,
                    int64_t row_end,
                    int64_t panel,
                    int64_t panel_end,
                    Terms k,
                    int64_t longest,
                    const PanelOf& panel_of) {
  const auto kernel = float_table().tiles_f32;
  for_blocks(k, longest, [&](Terms block, bool first, bool last) {
    const SegmentF32 segment{block.begin * p.a.col_stride, 0};
    for (int64_t i = panel; i < panel_end; ++i) {
      const int64_t column = i * kPanelColumns;
      const PanelF32 b = panel_of(block, column, std::min(p.n - column, kPanelColumns));
      kernel(tiles_of(p, row, row_end, b, segment, block.count(), first, last));
    }
  });
}

/// Applies p's epilogue to `partial`, the finished sums [m, n], and stores the results in c.
void finish(const Product& p, const float* partial);

/// Splits the sums of p, which have k terms, into chunks: calls multiply(product, terms) for each
/// chunk, and adds up the results of the chunks in a binary tree.
template <class Multiply>
void add_chunks(const Product& p, int64_t k, const Multiply& multiply) {
  const int64_t size = chunk_terms(k);
  const int64_t chunks = (k + size - 1) / size;
  const EpilogueF32 none;
  Buffer<float> partial(chunks * p.m * p.n);
  parallel_for(k, size, [&](int64_t begin, int64_t end) {
    float* const c = partial.data() + begin / size * p.m * p.n;
    multiply(Product{p.m, p.n, p.a, c, p.n, none}, Terms{begin, end});
  });
  add_up(chunks, p.m * p.n, partial.data());
  finish(p, partial.data());
}

/// The kernel that sums: tiles_f32 or, for few rows or columns, dots_f32 or chains_f32.
enum class SumForm { kTiles, kDots, kChains };
/// Chooses the form. Tiles are slow in three cases. With few rows, it does not pay off to transpose
/// B. With one row, each multiply-add waits for the one before. With few columns, lanes stay empty.
/// Dots need both operands contiguous along k. They also need a long k, because each sum ends with
/// a tree that adds up 16 lanes.
inline SumForm sum_form(const Product& p, int64_t k, const MatrixF32& b) {
  if (p.a.col_stride != 1) return SumForm::kTiles;
  if (b.col_stride == 1) return p.m == 1 ? SumForm::kChains : SumForm::kTiles;
  const bool few_rows = p.m <= 16 && 8 * p.m <= k;
  const bool few_columns = p.n <= 12 && 8 * p.n <= k;
  return few_rows || few_columns ? SumForm::kDots : SumForm::kTiles;
}

/// Computes p, whose sums have k terms, as dots or chains.
void multiply_few(SumForm form, const Product& p, int64_t k, const MatrixF32& b);

// scratch() and rows_of() differ for a B of floats and a B of codes.

/// Memory that rows_of may need for sums of length k.
inline Buffer<float> scratch(const MatrixF32& /*b*/, int64_t /*k*/) { return {}; }
inline Buffer<float> scratch(const CodeMatrix& /*b*/, int64_t k) {
  return Buffer<float>(std::min(k, kLongestChain) * kPanelColumns);
}

/// Rows k (a range) of the columns [column, column + columns) as floats. Floats are read in place;
/// codes are dequantized into scratch.
inline MatrixF32 rows_of(
    const MatrixF32& b, Terms k, int64_t column, int64_t /*columns*/, float* /*scratch*/) {
  return {b.data + k.begin * b.row_stride + column * b.col_stride, b.row_stride, b.col_stride};
}
inline MatrixF32 rows_of(
    const CodeMatrix& b, Terms k, int64_t column, int64_t columns, float* scratch) {
  b.codes.rows_to_float(k.begin, k.end, b.row_stride, column, columns, scratch, kPanelColumns);
  return {scratch, kPanelColumns, 1};
}

/// Packs k rows of a panel.
inline void pack_rows(const MatrixF32& from, int64_t k, int64_t columns, float* to) {
  float_table().pack_f32({k, 0, k, columns, from.data, from.row_stride, from.col_stride, to});
}

}  // namespace quantrain::kernels
