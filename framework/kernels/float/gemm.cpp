#include "framework/kernels/float/gemm.hpp"

#include <algorithm>
#include <type_traits>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/partial_sums.hpp"
#include "framework/kernels/float/tiles.hpp"

namespace quantrain::kernels {
namespace {

// The rounding error of a chain grows with its length. So a sum whose chains would have more terms
// than this is cut into blocks whose chains have at most half as many, and C adds up the blocks. A
// block's panel of B stays in the second-level cache.
constexpr int64_t kLongestChain = 1024;
// A sum of more terms than this is cut into chunks, which are summed apart: few enough blocks for
// one chain. Chunks are tasks, too, where there are few results.
constexpr int64_t kLongestChunk = 32768;
// With more rows than this B is packed once for all; with fewer it is read in place, or packed by
// each task where its columns are contiguous.
constexpr int64_t kManyRows = 256;
// With no more rows than this a B whose columns are contiguous is turned in blocks that stay in the
// first-level cache: so many rows of a whole panel.
constexpr int64_t kFewRows = 8;
constexpr int64_t kTurnedRows = 64;
// Products of no more rows or columns than this may be sums in lanes.
constexpr int64_t kDotRows = 16;
constexpr int64_t kDotColumns = 12;
// Where rows of B are a page or more apart, the processor does not see which lines of them will be
// read next.
constexpr int64_t kPageFloats = 4096 / sizeof(float);
// Multiply-adds worth a task.
constexpr int64_t kTaskWork = 500000;

/// The terms [begin, end) of a sum.
struct Terms {
  int64_t count() const { return end - begin; }

  int64_t begin, end;
};

/// Terms of a chunk of the sum of k: all, or as many as in the others.
int64_t chunk_terms(int64_t k) {
  if (k <= kLongestChunk) return k;
  const int64_t chunks = (k + kLongestChunk - 1) / kLongestChunk;
  return (k + chunks - 1) / chunks;
}

/// Calls f(block, first, last) for the blocks of these terms, at least one: all of them, or, where
/// they are more than `longest`, blocks of about equal size of at most half as many.
template <class F>
void for_blocks(Terms k, int64_t longest, F&& f) {
  if (k.count() <= longest) return f(k, true, true);  // a division takes as long as a short product
  const int64_t blocks = (2 * k.count() + longest - 1) / longest;
  const int64_t size = (k.count() + blocks - 1) / blocks;
  for (int64_t begin = k.begin; begin < k.end; begin += size) {
    const int64_t end = std::min(k.end, begin + size);
    f(Terms{begin, end}, begin == k.begin, end == k.end);
  }
}

/// The left operand and the result of a product.
struct Sides {
  /// Rows [row, row_end) x the panel of `columns` columns from `column` on. Of the sum, what
  /// `segment` and `length` say, with those rows of B at b, packed or, where b_step is not 0, as
  /// they lie; `first` and `last` if that begins and ends it.
  TilesF32 tiles(int64_t row,
                 int64_t row_end,
                 int64_t column,
                 int64_t columns,
                 const SegmentF32& segment,
                 int64_t length,
                 const float* b,
                 int64_t b_step,
                 bool first,
                 bool last) const {
    // Not cleared first: that takes longer than a short product's tile.
    TilesF32 p;
    p.m = row_end - row;
    p.n = columns;
    p.runs = 1;
    p.segments = 1;
    p.length = length;
    p.segment = &segment;
    p.a = {nullptr, a.data + row * a.row_stride, a.row_stride, 0};
    p.a_step = a.col_stride;
    p.b = b;
    p.b_rows = length;
    p.b_step = b_step;
    p.c = {nullptr, c + row * c_stride, c_stride, 0};
    p.column = column;
    p.fetches_next = false;
    set_epilogue(p, epilogue, column, first, last);
    return p;
  }

  const MatrixF32& a;
  float* c;
  int64_t c_stride;
  const EpilogueF32& epilogue;
};

/// Whether panels of B are packed though its rows are contiguous: where these are a multiple of a
/// page apart they share a few sets of the first-level cache. Kernels that load whole lines bear
/// that; others lose more than packing takes if A has many rows and sums are short.
bool packs_rows(const MatrixF32& b, int64_t m, int64_t k) {
  return m > 48 && k <= 128 && b.row_stride % kPageFloats == 0 && float_table().vector_floats < 16;
}
bool packs_rows(const CodeMatrix& /*b*/, int64_t /*m*/, int64_t /*k*/) { return false; }

/// Memory that block() may need for sums of length k.
Buffer<float> scratch(const MatrixF32& /*b*/, int64_t /*k*/) { return {}; }
Buffer<float> scratch(const CodeMatrix& /*b*/, int64_t k) {
  return Buffer<float>(std::min(k, kLongestChain) * kPanelColumns);
}

/// Rows k of a panel's columns as floats: where they lie, or made.
MatrixF32 rows_of(
    const MatrixF32& b, Terms k, int64_t column, int64_t /*columns*/, float* /*made*/) {
  return {b.data + k.begin * b.row_stride + column * b.col_stride, b.row_stride, b.col_stride};
}
MatrixF32 rows_of(const CodeMatrix& b, Terms k, int64_t column, int64_t columns, float* made) {
  for (int64_t i = k.begin; i < k.end; ++i)
    b.codes.to_float(i, i * b.row_stride + column, columns, made + (i - k.begin) * kPanelColumns);
  return {made, kPanelColumns, 1};
}

/// c = partial [m, n] + what c holds where that is added + bias, then the activation.
void finish(int64_t m,
            int64_t n,
            const float* partial,
            float* c,
            int64_t c_stride,
            const EpilogueF32& epilogue) {
  for (int64_t i = 0; i < m; ++i, partial += n) {
    float* const row = c + i * c_stride;
    if (epilogue.accumulate) {
      float_table().add_f32(n, partial, row, row);
    } else {
      std::copy_n(partial, n, row);
    }
  }
  if (epilogue.bias == nullptr && epilogue.activation == Activation::kNone) return;
  // A product without terms.
  const MatrixF32 none{nullptr, 0, 0};
  const SegmentF32 segment{0, 0};
  const Sides sides{none, c, c_stride, epilogue};
  for (int64_t column = 0; column < n; column += kPanelColumns) {
    TilesF32 p = sides.tiles(
        0, m, column, std::min(n - column, kPanelColumns), segment, 0, nullptr, 0, false, true);
    float_table().tiles_f32(p);
  }
}

/// c = the sum of k terms that are more than a chunk: calls product(terms, c, c_stride, epilogue)
/// for each chunk and adds up what they give in a binary tree.
template <class Product>
void add_chunks(int64_t m,
                int64_t n,
                int64_t k,
                float* c,
                int64_t c_stride,
                const EpilogueF32& epilogue,
                const Product& product) {
  const int64_t size = chunk_terms(k);
  const int64_t chunks = (k + size - 1) / size;
  Buffer<float> partial(chunks * m * n);
  parallel_for(k, size, [&](int64_t begin, int64_t end) {
    product(Terms{begin, end}, partial.data() + begin / size * m * n, n, EpilogueF32{});
  });
  add_up(chunks, m * n, partial.data());
  finish(m, n, partial.data(), c, c_stride, epilogue);
}

}  // namespace

PackedMatrixF32::PackedMatrixF32(int64_t k, int64_t n, const MatrixF32& b)
    : k_(k), n_(n), data_(k * packed_columns(n)) {
  pack(b);
}

PackedMatrixF32::PackedMatrixF32(int64_t k, int64_t n, const CodeMatrix& b)
    : k_(k), n_(n), data_(k * packed_columns(n)) {
  pack(b);
}

template <class B>
void PackedMatrixF32::pack(const B& b) {
  const auto kernel = float_table().pack_f32;
  const int64_t panels = (n_ + kPanelColumns - 1) / kPanelColumns;
  const int64_t grain = std::max<int64_t>(1, kTaskWork / (kPanelColumns * k_ + 1));
  parallel_for(panels, grain, [&](int64_t i, int64_t end) {
    Buffer<float> made = scratch(b, k_);
    for (; i < end; ++i) {
      const int64_t column = i * kPanelColumns;
      const int64_t columns = std::min(n_ - column, kPanelColumns);
      float* const to = data_.data() + column * k_;
      const auto pack_block = [&](Terms k, bool, bool) {
        const MatrixF32 from = rows_of(b, k, column, columns, made.data());
        kernel({k.count(),
                0,
                k.count(),
                columns,
                from.data,
                from.row_stride,
                from.col_stride,
                to + k.begin * packed_columns(columns)});
      };
      const int64_t chunk = chunk_terms(k_);
      for (int64_t begin = 0; begin < k_; begin += chunk)
        for_blocks({begin, std::min(k_, begin + chunk)}, kLongestChain, pack_block);
    }
  });
}

namespace {

/// Whether sums run in lanes along k, where both operands are contiguous: few rows would wait until
/// B is turned for them, few columns leave lanes empty. Each sum ends in a tree, so it has to be
/// long.
bool takes_dots(int64_t m, int64_t n, int64_t k, const MatrixF32& a, const MatrixF32& b) {
  return a.col_stride == 1 && b.col_stride != 1 &&
         ((m <= kDotRows && 8 * m <= k) || (n <= kDotColumns && 8 * n <= k));
}

/// How many chains make up a sum.
int64_t chains_of(bool dots, int64_t n) { return dots ? 16 : n > kPanelColumns ? 1 : 4; }

/// c = a * b over the terms k by dots_f32 or chains_f32, which take all of them at once.
void multiply_few(bool dots,
                  int64_t m,
                  int64_t n,
                  Terms k,
                  const MatrixF32& a,
                  const MatrixF32& b,
                  float* c,
                  int64_t c_stride,
                  const EpilogueF32& epilogue) {
  const auto kernel = dots ? float_table().dots_f32 : float_table().chains_f32;
  FewF32 p;
  p.m = m;
  p.n = n;
  p.k = k.count();
  p.chains = chains_of(dots, n);
  p.a = a.data + k.begin;
  p.a_step = a.row_stride;
  p.b = b.data + k.begin * b.row_stride;
  p.b_step = dots ? b.col_stride : b.row_stride;
  p.c = c;
  p.c_step = c_stride;
  set_epilogue(p, epilogue, 0);
  // A thread alone reads whole rows of B: parts of them come at two thirds of the speed.
  if (m * n * p.k <= kTaskWork || (!dots && threads() == 1)) return kernel(p);
  if (m > n) {
    parallel_for_even(m, kTaskWork / (n * p.k) + 1, [&](int64_t row, int64_t end) {
      FewF32 part = p;
      part.m = end - row;
      part.a += row * p.a_step;
      part.c += row * p.c_step;
      kernel(part);
    });
  } else {
    const int64_t panels = kTaskWork / (m * p.k * kPanelColumns) + 1;
    parallel_for(n, panels * kPanelColumns, [&](int64_t column, int64_t end) {
      FewF32 part = p;
      part.n = end - column;
      part.b += column * b.col_stride;
      part.c += column;
      if (p.bias != nullptr) part.bias += column;
      kernel(part);
    });
  }
}

/// c = a * b over the terms k for up to kManyRows rows: panel by panel, packed or where they lie.
template <class B>
void multiply_panels(int64_t m,
                     int64_t n,
                     Terms k,
                     const MatrixF32& a,
                     const B& b,
                     float* c,
                     int64_t c_stride,
                     const EpilogueF32& epilogue) {
  const FloatTable& kernels = float_table();
  const Sides sides{a, c, c_stride, epilogue};
  const bool packs_all = packs_rows(b, m, k.count());
  const int64_t panels = (n + kPanelColumns - 1) / kPanelColumns;
  const int64_t work = m * k.count() * kPanelColumns;
  // Rows are cut only where there are fewer panels than threads, because each part reads its panels
  // anew, or packs them.
  const int64_t parts =
      work < 2 * kTaskWork ? 1 : std::clamp<int64_t>(threads() / panels, 1, (m + 31) / 32);
  // Here and below, no division where there is nothing to divide: short products would feel it.
  const int64_t part = parts == 1 ? m : (m + parts - 1) / parts;
  const int64_t grain = parts > 1                    ? 1
                        : panels * work <= kTaskWork ? panels
                                                     : kTaskWork / (work + 1) + 1;
  parallel_for(panels * parts, grain, [&](int64_t task, int64_t end) {
    Buffer<float> packed;
    Buffer<float> made = scratch(b, k.count());
    for (; task < end; ++task) {
      const int64_t panel = parts == 1 ? task : task / parts;
      const int64_t row = (task - panel * parts) * part;
      const int64_t row_end = std::min(m, row + part);
      const int64_t column = panel * kPanelColumns;
      const int64_t columns = std::min(n - column, kPanelColumns);
      int64_t longest = kLongestChain;
      if constexpr (std::is_same_v<B, MatrixF32>) {
        const bool turns = m <= kFewRows && b.col_stride != 1;
        if (turns) longest = kTurnedRows * kPanelColumns / packed_columns(columns);
      }
      for_blocks(k, longest, [&](Terms block, bool first, bool last) {
        const MatrixF32 from = rows_of(b, block, column, columns, made.data());
        const bool packs = packs_all || from.col_stride != 1;
        const SegmentF32 segment{block.begin * a.col_stride, 0};
        if (packs) {
          if (packed.size() == 0) {
            packed = Buffer<float>(std::min(k.count(), kLongestChain) * kPanelColumns);
          }
          kernels.pack_f32({block.count(),
                            0,
                            block.count(),
                            columns,
                            from.data,
                            from.row_stride,
                            from.col_stride,
                            packed.data()});
        }
        TilesF32 p = sides.tiles(row,
                                 row_end,
                                 column,
                                 columns,
                                 segment,
                                 block.count(),
                                 packs ? packed.data() : from.data,
                                 packs ? 0 : from.row_stride,
                                 first,
                                 last);
        p.fetches_next = !packs && from.row_stride >= kPageFloats;
        kernels.tiles_f32(p);
      });
    }
  });
}

template <class B>
void multiply(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const B& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  if (m == 0 || n == 0) return;
  if constexpr (std::is_same_v<B, MatrixF32>) {
    const bool dots = takes_dots(m, n, k, a, b);
    if (dots || (m == 1 && a.col_stride == 1 && b.col_stride == 1)) {
      const int64_t longest = kLongestChain * chains_of(dots, n);
      if (k <= longest) return multiply_few(dots, m, n, {0, k}, a, b, c, c_stride, epilogue);
      const auto few = [&](Terms terms, float* to, int64_t to_stride, const EpilogueF32& end) {
        for_blocks(terms, longest, [&](Terms block, bool first, bool last) {
          const EpilogueF32 of_block{last ? end.bias : nullptr,
                                     last ? end.activation : Activation::kNone,
                                     end.accumulate || !first};
          multiply_few(dots, m, n, block, a, b, to, to_stride, of_block);
        });
      };
      return add_chunks(m, n, k, c, c_stride, epilogue, few);
    }
  } else if (m == 1) {
    Buffer<float> made(k * n);
    for (int64_t i = 0; i < k; ++i) b.codes.to_float(i, i * b.row_stride, n, made.data() + i * n);
    return multiply(m, n, k, a, MatrixF32{made.data(), n, 1}, c, c_stride, epilogue);
  }
  if (m > kManyRows) return gemm_f32(m, a, PackedMatrixF32(k, n, b), c, c_stride, epilogue);
  if (k <= kLongestChunk) return multiply_panels(m, n, {0, k}, a, b, c, c_stride, epilogue);
  const auto panels = [&](Terms terms, float* to, int64_t to_stride, const EpilogueF32& end) {
    multiply_panels(m, n, terms, a, b, to, to_stride, end);
  };
  add_chunks(m, n, k, c, c_stride, epilogue, panels);
}

/// c = a * b over the terms k for many rows: blocks of rows, over as many panels as they can share.
void multiply_packed(int64_t m,
                     Terms k,
                     const MatrixF32& a,
                     const PackedMatrixF32& b,
                     float* c,
                     int64_t c_stride,
                     const EpilogueF32& epilogue) {
  const int64_t n = b.n();
  const auto kernel = float_table().tiles_f32;
  const Sides sides{a, c, c_stride, epilogue};
  // Blocks of many tiles of rows; where there are too few of them, the panels are cut too.
  const int64_t parts = m <= 192 ? 1 : even_blocks(m, 96);
  const int64_t panels = (n + kPanelColumns - 1) / kPanelColumns;
  const int64_t group =
      parts >= 4 * threads()
          ? panels
          : std::max<int64_t>(1, kTaskWork / (m / parts * k.count() * kPanelColumns + 1));
  const int64_t groups = (panels + group - 1) / group;
  const int64_t work = m / parts * k.count() * group * kPanelColumns;
  parallel_for(parts * groups, kTaskWork / (work + 1) + 1, [&](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t row = m * (task / groups) / parts;
      const int64_t row_end = m * (task / groups + 1) / parts;
      const int64_t first_panel = task % groups * group;
      for_blocks(k, kLongestChain, [&](Terms block, bool first, bool last) {
        const SegmentF32 segment{block.begin * a.col_stride, 0};
        for (int64_t i = first_panel; i < std::min(panels, first_panel + group); ++i) {
          const int64_t column = i * kPanelColumns;
          const int64_t columns = std::min(n - column, kPanelColumns);
          kernel(sides.tiles(row,
                             row_end,
                             column,
                             columns,
                             segment,
                             block.count(),
                             b.data() + column * b.k() + block.begin * packed_columns(columns),
                             0,
                             first,
                             last));
        }
      });
    }
  });
}

}  // namespace

void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const MatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  // One task, one block, nothing to pack, more than one row (which is chains): the kernel takes all
  // columns at once.
  if (m > 1 && m <= kManyRows && k <= kLongestChain && m * n * k <= kTaskWork &&
      b.col_stride == 1 && !packs_rows(b, m, k)) {
    const SegmentF32 whole{0, 0};
    const Sides sides{a, c, c_stride, epilogue};
    return float_table().tiles_f32(
        sides.tiles(0, m, 0, n, whole, k, b.data, b.row_stride, true, true));
  }
  multiply(m, n, k, a, b, c, c_stride, epilogue);
}

void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const CodeMatrix& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  multiply(m, n, k, a, b, c, c_stride, epilogue);
}

void gemm_f32(int64_t m,
              const MatrixF32& a,
              const PackedMatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  if (m == 0 || b.n() == 0) return;
  if (b.k() <= kLongestChunk) return multiply_packed(m, {0, b.k()}, a, b, c, c_stride, epilogue);
  const auto packed = [&](Terms terms, float* to, int64_t to_stride, const EpilogueF32& end) {
    multiply_packed(m, terms, a, b, to, to_stride, end);
  };
  add_chunks(m, b.n(), b.k(), c, c_stride, epilogue, packed);
}

}  // namespace quantrain::kernels
