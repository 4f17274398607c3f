#include <algorithm>
#include <cstring>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "framework/kernels/integer/dot.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::kernels {
namespace {

// The largest block has kMaxRows rows, a multiple of kRowStep. kRowStep is a multiple of the height
// of every tile (8, 6 or 4 rows).
constexpr int64_t kRowStep = 24;
constexpr int64_t kMaxRows = 20 * kRowStep;
constexpr int64_t kSharedRows = 4 * kRowStep;  // with fewer bits and AMX, blocks may have as many
static_assert(kMaxRows <= kMostDotRows);
// A block may have this many bytes of weights, even if its work would justify fewer panels. They
// fit into a part of the second-level cache.
constexpr int64_t kBlockWeights = int64_t{1} << 17;

/// How a product of m rows is cut into blocks.
struct Blocks {
  int64_t pairs;         ///< pairs of rows
  int64_t row_blocks;    ///< blocks that these pairs make
  int64_t panels;        ///< panels of a block
  int64_t panel_blocks;  ///< blocks that all panels make

  /// k: bytes of a row.
  Blocks(const PackedWeightsS8& w, int64_t m, int64_t k) {
    const int64_t work = (k + kOutputProducts) * w.outputs();  // products of a row
    int64_t most_rows = kMaxRows;
    panels = w.panels_per_group();
    if (m * work > kBlockProducts / 2) {
      most_rows =
          std::min(kMaxRows, round_up(std::max<int64_t>(kBlockProducts / work, 1), kRowStep));
      // Fewer bits and AMX gain more from rows that share weights.
      if (w.layout().few != FewBits::kNone || w.isa() == Isa::kAmx) {
        most_rows = std::max(most_rows, kSharedRows);
      }
      const int64_t by_weights = kBlockWeights / std::max<int64_t>(w.panel_bytes(), 1);
      const int64_t by_products =
          kBlockProducts / 2 / (std::min(m, most_rows) * (k + kOutputProducts) * w.layout().width);
      panels = std::min(panels, std::max({by_weights, by_products, int64_t{1}}));
    }
    // Blocks with the same weights are neighbours in the list of blocks. So if two threads halve
    // the list, each gets half of the panels or, if each block has all panels, half of the rows.
    pairs = (m + 1) / 2;
    row_blocks = even_blocks(pairs, most_rows / 2);
    panel_blocks =
        panels == w.panels_per_group() ? 1 : (w.panels_per_group() + panels - 1) / panels;
  }
};

void gemm(int64_t m,
          int64_t k,
          const uint8_t* x,
          const PackedWeightsS8& given,
          const ProductParams& given_params,
          int32_t* acc,
          uint8_t* y) {
  const int64_t n = given.outputs();
  if (m <= 0 || n <= 0) return;
  PackedWeightsS8 copy;
  const PackedWeightsS8& w = given.for_chosen_isa(copy);
  ProductParams params_copy;
  const ProductParams& params = given_params.for_weights(w, params_copy);
  const int64_t width = w.layout().width;
  const IntegerTable& kernels = integer_table();
  Buffer<uint8_t> bits;
  if (w.layout().few == FewBits::kBits) {
    bits = packed_bits(m, k, x);
    x = bits.data();
    k = bit_bytes(k);
  }

  // In the last rows, reads of whole groups would run past the end of the caller's buffer. So
  // these rows are copied.
  const int64_t reach = 4 * w.quads();
  int64_t whole_rows = m;
  while (whole_rows > 0 && (whole_rows - 1) * k + reach > m * k) --whole_rows;
  Buffer<uint8_t> last_rows;
  if (whole_rows < m) last_rows = Buffer<uint8_t>((m - whole_rows) * reach);
  for (int64_t i = whole_rows; i < m; ++i) {
    std::memcpy(last_rows.data() + (i - whole_rows) * reach, x + i * k, static_cast<size_t>(k));
    std::memset(last_rows.data() + (i - whole_rows) * reach + k, 0, static_cast<size_t>(reach - k));
  }

  const Blocks blocks(w, m, k);

  const auto multiply = [&](int64_t row, int64_t end_row, int64_t panel) {
    const int64_t output = panel * width;
    const int64_t rows = end_row - row;
    const uint8_t* pointers[kMaxRows];
    const int64_t whole = std::clamp<int64_t>(whole_rows - row, 0, rows);
    for (int64_t i = 0; i < whole; ++i) pointers[i] = x + (row + i) * k;
    for (int64_t i = whole; i < rows; ++i) {
      pointers[i] = last_rows.data() + (row + i - whole_rows) * reach;
    }
    dot_u8s8(kernels,
             {.rows = rows,
              .outputs = std::min(blocks.panels * width, n - output),
              .segments = 1,
              .segment_step = 0,
              .quads = w.quads(),
              .x = pointers,
              .w = w.data() + panel * w.panel_bytes(),
              .panel = w.panel_bytes(),
              .layout = w.layout(),
              .start = params.start(output),
              .requantize = params.requantize(output),
              .acc = acc != nullptr ? acc + row * n + output : nullptr,
              .y = y != nullptr ? y + row * n + output : nullptr,
              .stride = n,
              .terms = k});
  };
  // Returns before the divisions below, which would slow down a product of a single row.
  if (blocks.row_blocks * blocks.panel_blocks == 1) return multiply(0, m, 0);
  parallel_for(blocks.row_blocks * blocks.panel_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t rows = block % blocks.row_blocks;
      multiply(rows * blocks.pairs / blocks.row_blocks * 2,
               std::min(m, (rows + 1) * blocks.pairs / blocks.row_blocks * 2),
               block / blocks.row_blocks * blocks.panels);
    }
  });
}

}  // namespace

int64_t gemm_scratch(int64_t m, const PackedWeightsS8& w) {
  const int64_t k = w.shape().c;
  const bool packs = w.layout().few == FewBits::kBits;
  const int64_t row = packs ? bit_bytes(k) : k;
  const int64_t reach = 4 * w.quads();
  const int64_t copies = std::min(m, (reach - row + row - 1) / row) * reach + (packs ? m * row : 0);
  const int64_t unpacked = dot_scratch(w.layout(), m, 1, row);
  if (unpacked == 0) return copies;
  const Blocks blocks(w, std::min(m, kMaxRows * threads()), row);
  return copies + unpacked * std::min<int64_t>(blocks.row_blocks * blocks.panel_blocks, threads());
}

void gemm_u8s8_s32(int64_t m,
                   int64_t k,
                   const uint8_t* x,
                   const PackedWeightsS8& w,
                   const ProductParams& params,
                   int32_t* acc) {
  gemm(m, k, x, w, params, acc, nullptr);
}

void gemm_u8s8_u8(int64_t m,
                  int64_t k,
                  const uint8_t* x,
                  const PackedWeightsS8& w,
                  const ProductParams& params,
                  uint8_t* y) {
  gemm(m, k, x, w, params, nullptr, y);
}

}  // namespace quantrain::kernels
