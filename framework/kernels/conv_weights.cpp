#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/conv.hpp"
#include "framework/kernels/conv_band.hpp"
#include "framework/kernels/depthwise.hpp"
#include "framework/kernels/dispatch.hpp"
#include "framework/kernels/partial_sums.hpp"
#include "framework/kernels/tiles.hpp"

// The gradient by the weights is a product too: its rows are the elements (u, v, c) of the kernel,
// its columns the output channels, and the sum runs over all output pixels. Chunks of output lines,
// cut by problem size, are summed for themselves and then joined in a fixed tree.
namespace quantrain::kernels {
namespace {

constexpr int64_t kMostChunks = 16;
constexpr int64_t kChunkWork = 1000000;        // multiply-adds that a chunk should have at least
constexpr int64_t kMostPartialSums = 4 << 20;  // in all chunks together
constexpr int64_t kBlockPixels = 128;  // so that a panel of grad_y stays in the first-level cache

int64_t chunk_lines(const Conv2dShape& s, int64_t sums) {
  const int64_t lines = s.n * s.oh();
  const int64_t work = lines * s.ow() * sums;
  const int64_t chunks = std::clamp<int64_t>(
      std::min(work / kChunkWork, kMostPartialSums / sums), 1, std::min(lines, kMostChunks));
  return (lines + chunks - 1) / chunks;
}

/// Rows [row, row_end) of the gradient of a group, summed over output lines [begin, end).
void sum_chunk(const Conv2dShape& s,
               const BandSource& source,
               const float* grad_y,
               int64_t begin,
               int64_t end,
               int64_t row,
               int64_t row_end,
               float* sums) {
  const auto kernel = table().tiles_f32;
  const int64_t oh = s.oh();
  const int64_t ow = s.ow();
  const int64_t o = s.group_o();
  const int64_t width = packed_columns(o);
  const int64_t window_row = s.kw * source.channels;
  const int64_t block = kBlockPixels / ow + 1;
  Buffer<const float*> rows(row_end - row);
  Buffer<float*> results(row_end - row);
  Buffer<SegmentF32> segments(block);
  for (int64_t i = row; i < row_end; ++i) results[i - row] = sums + i * width;
  TilesF32 tiles{};
  tiles.m = row_end - row;
  tiles.length = ow;
  tiles.a = rows.data();
  tiles.segment = segments.data();
  tiles.c = results.data();
  tiles.lo = -__builtin_inff();
  tiles.hi = __builtin_inff();
  for (int64_t line = begin; line < end;) {
    const int64_t stop = std::min(end, (line / oh + 1) * oh);
    const Band band(source, oh, ow, line, stop);
    for (int64_t i = row; i < row_end; ++i) {
      rows[i - row] = band.line(line) + i / window_row * band.row_step() + i % window_row;
    }
    tiles.a_step = band.pixel_step();
    // Whole vectors are read of each pixel's gradient: where a group has part of one, that is
    // copied.
    const float* b = grad_y + line * ow * s.o;
    int64_t b_step = s.o;
    Buffer<float> copy;
    if (o != width) {
      copy = Buffer<float>((stop - line) * ow * width);
      for (int64_t pixel = 0; pixel < (stop - line) * ow; ++pixel) {
        float* const to = copy.data() + pixel * width;
        std::copy_n(b + pixel * s.o, o, to);
        std::fill(to + o, to + width, 0.0f);
      }
      b = copy.data();
      b_step = width;
    }
    for (int64_t column = 0; column < width; column += kPanelColumns) {
      tiles.n = std::min(width - column, kPanelColumns);
      tiles.column = column;
      tiles.b_step = b_step;
      for (int64_t i = line; i < stop; i += block) {
        tiles.segments = std::min(block, stop - i);
        for (int64_t j = 0; j < tiles.segments; ++j) {
          segments[j] = {(i - line + j) * band.line_step(), (i - line + j) * ow};
        }
        tiles.b = b + column;
        tiles.accumulate = i > begin;
        kernel(tiles);
      }
    }
    line = stop;
  }
}

}  // namespace

void conv2d_backward_weights_f32(const Conv2dShape& s,
                                 const float* x,
                                 const float* grad_y,
                                 float* grad_w) {
  if (s.weight_elements() == 0) return;
  if (s.y_elements() == 0) {
    std::fill_n(grad_w, s.weight_elements(), 0.0f);
    return;
  }
  if (is_depthwise(s)) return depthwise_backward_weights_f32(s, x, grad_y, grad_w);
  const int64_t k = s.reduction();
  const int64_t o = s.group_o();
  const int64_t width = packed_columns(o);
  const int64_t sums = k * width;
  const int64_t lines = s.n * s.oh();
  const int64_t chunk = chunk_lines(s, sums);
  const int64_t chunks = (lines + chunk - 1) / chunk;
  // With few chunks the rows are cut too, into whole tiles of 6, 8 or 12; that changes no sum.
  const int64_t part = (k * chunks / kMostChunks + 24) / 24 * 24;
  const int64_t parts = (k + part - 1) / part;
  Buffer<float> partial(chunks * sums);
  for (int64_t g = 0; g < s.groups; ++g) {
    const BandSource source = forward_source(s, x, g);
    parallel_for(chunks * parts, 1, [&](int64_t task, int64_t) {
      const int64_t i = task / parts;
      const int64_t row = task % parts * part;
      sum_chunk(s,
                source,
                grad_y + g * o,
                i * chunk,
                std::min(lines, (i + 1) * chunk),
                row,
                std::min(k, row + part),
                partial.data() + i * sums);
    });
    add_up(chunks, sums, partial.data());
    float* const to = grad_w + g * o * k;
    parallel_for(o, 65536 / k + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < k; ++j) to[i * k + j] = partial[j * width + i];
      }
    });
  }
}

}  // namespace quantrain::kernels
