#include "framework/kernels/float/gemm.hpp"

#include <algorithm>
#include <type_traits>

#include "framework/kernels/float/product.hpp"

namespace quantrain::kernels {
namespace {

// If A has more than kManyRows rows, B is packed once for all tasks. Otherwise, each task packs its
// part of B if B's columns are contiguous or packs_rows() says so, else it reads B in place.
constexpr int64_t kManyRows = 256;
// If A has at most kFewRows rows, a B with contiguous columns is transposed in blocks that stay in
// the first-level cache. Such a block has at most kTransposedRows rows if the panel is
// kPanelColumns wide. In a narrower panel, it may have more rows, but not more elements.
constexpr int64_t kFewRows = 8;
constexpr int64_t kTransposedRows = 64;
// If rows of B are a page or more apart, the processor cannot predict which cache lines are read
// next.
constexpr int64_t kPageFloats = 4096 / sizeof(float);

/// Whether panels of B are packed although its rows are contiguous. Rows that are a multiple of a
/// page apart share a few sets of the first-level cache. Kernels whose vectors are whole cache
/// lines lose little time by this. If A has many rows and sums are short, the other kernels lose
/// more time by it than packing takes.
bool packs_rows(const MatrixF32& b, int64_t m, int64_t k) {
  return m > 48 && k <= 128 && b.row_stride % kPageFloats == 0 && float_table().vector_floats < 16;
}
bool packs_rows(const CodeMatrix& /*b*/, int64_t /*m*/, int64_t /*k*/) { return false; }

/// The most terms of one chain. A longer sum is split into blocks of at most half as many terms.
int64_t longest_chain(const MatrixF32& b, int64_t m, int64_t columns) {
  const bool transposes = m <= kFewRows && b.col_stride != 1;
  return transposes ? kTransposedRows * kPanelColumns / packed_columns(columns) : kLongestChain;
}
int64_t longest_chain(const CodeMatrix& /*b*/, int64_t /*m*/, int64_t /*columns*/) {
  return kLongestChain;
}

/// Adds up the terms k of each sum of p, for up to kManyRows rows, panel by panel. Packs each panel
/// or reads it in place.
template <class B>
void multiply_panels(const Product& p, Terms k, const B& b) {
  const bool packs_all = packs_rows(b, p.m, k.count());
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns;
  const int64_t work = p.m * k.count() * kPanelColumns;
  // Rows are split only if there are fewer panels than threads, because each part reads or packs
  // its panels again.
  const int64_t parts =
      work < 2 * kTaskWork ? 1 : std::clamp<int64_t>(threads() / panels, 1, (p.m + 31) / 32);
  // Here and below, a division is skipped if it is not needed, because it would slow down small
  // products.
  const int64_t part = parts == 1 ? p.m : (p.m + parts - 1) / parts;
  const int64_t grain = parts > 1                    ? 1
                        : panels * work <= kTaskWork ? panels
                                                     : kTaskWork / (work + 1) + 1;
  parallel_for(panels * parts, grain, [&](int64_t task, int64_t end) {
    Buffer<float> packed;
    Buffer<float> floats = scratch(b, k.count());
    const auto panel_of = [&](Terms block, int64_t column, int64_t columns) -> PanelF32 {
      const MatrixF32 from = rows_of(b, block, column, columns, floats.data());
      if (!packs_all && from.col_stride == 1) {
        return {column, columns, from.data, from.row_stride, from.row_stride >= kPageFloats};
      }
      if (packed.size() == 0) {
        packed = Buffer<float>(std::min(k.count(), kLongestChain) * kPanelColumns);
      }
      pack_rows(from, block.count(), columns, packed.data());
      return {column, columns, packed.data(), 0, false};
    };
    for (; task < end; ++task) {
      const int64_t panel = parts == 1 ? task : task / parts;
      const int64_t row = (task - panel * parts) * part;
      const int64_t columns = std::min(p.n - panel * kPanelColumns, kPanelColumns);
      multiply_tiles(p,
                     row,
                     std::min(p.m, row + part),
                     panel,
                     panel + 1,
                     k,
                     longest_chain(b, p.m, columns),
                     panel_of);
    }
  });
}

/// Adds up the terms k of each sum of p, for many rows. A task is a block of rows times a group of
/// panels.
void multiply_packed(const Product& p, Terms k, const PackedMatrixF32& b) {
  // Each block of rows has many tiles. If there are too few blocks, the panels are split, too, into
  // groups that are just large enough for a task.
  const int64_t parts = p.m <= 192 ? 1 : even_blocks(p.m, 96);
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns;
  const int64_t group =
      parts >= 4 * threads()
          ? panels
          : std::max<int64_t>(1, kTaskWork / (p.m / parts * k.count() * kPanelColumns + 1));
  const int64_t groups = (panels + group - 1) / group;
  const int64_t work = p.m / parts * k.count() * group * kPanelColumns;
  const auto panel_of = [&](Terms block, int64_t column, int64_t columns) -> PanelF32 {
    const float* const data = b.data() + column * b.k() + block.begin * packed_columns(columns);
    return {column, columns, data, 0, false};
  };
  parallel_for(parts * groups, kTaskWork / (work + 1) + 1, [&](int64_t task, int64_t end) {
    for (; task < end; ++task) {
      const int64_t panel = task % groups * group;
      multiply_tiles(p,
                     p.m * (task / groups) / parts,
                     p.m * (task / groups + 1) / parts,
                     panel,
                     std::min(panels, panel + group),
                     k,
                     kLongestChain,
                     panel_of);
    }
  });
}

void multiply_packed(const Product& p, const PackedMatrixF32& b) {
  if (b.k() <= kLongestChunk) return multiply_packed(p, {0, b.k()}, b);
  add_chunks(
      p, b.k(), [&](const Product& chunk, Terms terms) { multiply_packed(chunk, terms, b); });
}

template <class B>
void multiply(const Product& p, int64_t k, const B& b) {
  if (p.m == 0 || p.n == 0) return;
  if constexpr (std::is_same_v<B, MatrixF32>) {
    const SumForm form = sum_form(p, k, b);
    if (form != SumForm::kTiles) return multiply_few(form, p, k, b);
  } else if (p.m == 1) {
    Buffer<float> floats(k * p.n);
    b.codes.rows_to_float(0, k, b.row_stride, 0, p.n, floats.data(), p.n);
    return multiply(p, k, MatrixF32{floats.data(), p.n, 1});
  }
  if (p.m > kManyRows) return multiply_packed(p, PackedMatrixF32(k, p.n, b));
  if (k <= kLongestChunk) return multiply_panels(p, {0, k}, b);
  add_chunks(p, k, [&](const Product& chunk, Terms terms) { multiply_panels(chunk, terms, b); });
}

}  // namespace

void finish(const Product& p, const float* partial) {
  for (int64_t i = 0; i < p.m; ++i, partial += p.n) {
    float* const row = p.c + i * p.c_stride;
    if (p.epilogue.accumulate) {
      float_table().add_f32(p.n, partial, row, row);
    } else {
      std::copy_n(partial, p.n, row);
    }
  }
  if (p.epilogue.bias == nullptr && p.epilogue.activation == Activation::kNone) return;
  // A product without terms: it only adds the bias and applies the activation.
  const MatrixF32 none{nullptr, 0, 0};
  const Product sums{p.m, p.n, none, p.c, p.c_stride, p.epilogue};
  const SegmentF32 segment{0, 0};
  for (int64_t column = 0; column < p.n; column += kPanelColumns) {
    const PanelF32 panel{column, std::min(p.n - column, kPanelColumns), nullptr, 0, false};
    float_table().tiles_f32(tiles_of(sums, 0, p.m, panel, segment, 0, false, true));
  }
}

void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const MatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  const Product p{m, n, a, c, c_stride, epilogue};
  // The kernel takes all columns at once if the product is one task and one block, and B is read in
  // place. A single row is left to multiply(), which computes it as chains if A is contiguous.
  if (m > 1 && m <= kManyRows && k <= kLongestChain && m * n * k <= kTaskWork &&
      b.col_stride == 1 && !packs_rows(b, m, k)) {
    const SegmentF32 whole{0, 0};
    const PanelF32 panel{0, n, b.data, b.row_stride, false};
    return float_table().tiles_f32(tiles_of(p, 0, m, panel, whole, k, true, true));
  }
  multiply(p, k, b);
}

void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const CodeMatrix& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  multiply({m, n, a, c, c_stride, epilogue}, k, b);
}

void gemm_f32(int64_t m,
              const MatrixF32& a,
              const PackedMatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  if (m == 0 || b.n() == 0) return;
  multiply_packed({m, b.n(), a, c, c_stride, epilogue}, b);
}

}  // namespace quantrain::kernels
