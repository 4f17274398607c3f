#include <algorithm>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/partial_sums.hpp"

namespace quantrain::kernels {
namespace {

constexpr int64_t kGrain = 32768;
constexpr int64_t kMostChunks = 64;

/// Rows of a block, cut by problem size.
int64_t row_grain(int64_t columns) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1));
}

/// Calls chunk(begin, end, sums) for the chunks of [0, rows), each writing `width` sums of its own,
/// and adds those up in a binary tree whose form depends on `rows` and `columns` alone; with no
/// rows they are 0.
template <class Chunk>
void reduce_rows(int64_t rows, int64_t columns, int64_t width, float* sums, const Chunk& chunk) {
  if (rows == 0) std::fill(sums, sums + width, 0.0f);
  const int64_t grain = std::max(row_grain(columns), (rows + kMostChunks - 1) / kMostChunks);
  if (rows <= grain) {
    if (rows > 0) chunk(0, rows, sums);
    return;
  }
  const int64_t chunks = (rows + grain - 1) / grain;
  Buffer<float> partial(chunks * width);
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    chunk(begin, end, partial.data() + begin / grain * width);
  });
  add_up(chunks, width, partial.data());
  for (int64_t i = 0; i < width; ++i) sums[i] = partial[i];
}

}  // namespace

void add_up(int64_t parts, int64_t n, float* partial) {
  const auto add = float_table().add_f32;
  // So many columns of all parts at a time stay in a near cache.
  constexpr int64_t kBlock = 256;
  const int64_t grain = std::max(kBlock, 8 * kGrain / std::max<int64_t>(parts, 1));
  parallel_for(n, grain, [&](int64_t i, int64_t end) {
    for (; i < end; i += kBlock) {
      const int64_t size = std::min(kBlock, end - i);
      for (int64_t step = 1; step < parts; step *= 2) {
        for (int64_t part = 0; part + step < parts; part += 2 * step) {
          float* const to = partial + part * n + i;
          add(size, to, to + step * n, to);
        }
      }
    }
  });
}

float sum_f32(int64_t n, const float* x) {
  float sum = 0.0f;
  const auto kernel = float_table().sum_f32;
  reduce_rows(
      n, 1, 1, &sum, [&](int64_t i, int64_t end, float* sums) { kernel(end - i, x + i, sums); });
  return sum;
}

void sum_rows_f32(int64_t rows, int64_t columns, const float* x, float* y) {
  const auto kernel = float_table().column_sums_f32;
  reduce_rows(rows, columns, columns, y, [&](int64_t r, int64_t end, float* sums) {
    kernel(end - r, columns, x + r * columns, sums);
  });
}

void column_moments_f32(
    int64_t rows, int64_t columns, const float* x, float* mean, float* variance) {
  const auto count = static_cast<float>(rows);
  sum_rows_f32(rows, columns, x, mean);
  for (int64_t c = 0; c < columns; ++c) mean[c] /= count;
  const auto kernel = float_table().column_square_sums_f32;
  reduce_rows(rows, columns, columns, variance, [&](int64_t r, int64_t end, float* sums) {
    kernel(end - r, columns, x + r * columns, mean, sums);
  });
  for (int64_t c = 0; c < columns; ++c) variance[c] /= count;
}

void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          float* sum_grad,
                          float* sum_grad_x) {
  const auto kernel = float_table().column_grad_sums_f32;
  Buffer<float> both(2 * columns);
  reduce_rows(rows, columns, 2 * columns, both.data(), [&](int64_t r, int64_t end, float* sums) {
    kernel(end - r, columns, x + r * columns, mean, grad_y + r * columns, sums, sums + columns);
  });
  std::copy_n(both.data(), columns, sum_grad);
  std::copy_n(both.data() + columns, columns, sum_grad_x);
}

void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y) {
  const auto kernel = float_table().column_affine_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    kernel(end - r, columns, x + r * columns, scale, shift, y + r * columns);
  });
}

void batch_norm_backward_f32(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* mean,
                             const float* grad_y,
                             const float* a,
                             const float* b,
                             const float* d,
                             float* grad_x) {
  const auto kernel = float_table().batch_norm_backward_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    const int64_t i = r * columns;
    kernel(end - r, columns, x + i, mean, grad_y + i, a, b, d, grad_x + i);
  });
}

void softmax_f32(int64_t rows, int64_t columns, bool log, const float* x, float* y) {
  if (columns == 0) return;
  const auto kernel = log ? float_table().log_softmax_f32 : float_table().softmax_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    kernel(end - r, columns, x + r * columns, y + r * columns);
  });
}

void softmax_backward_f32(
    int64_t rows, int64_t columns, bool log, const float* y, const float* grad_y, float* grad_x) {
  const auto kernel =
      log ? float_table().log_softmax_backward_f32 : float_table().softmax_backward_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    const int64_t i = r * columns;
    kernel(end - r, columns, y + i, grad_y + i, grad_x + i);
  });
}

float cross_entropy_f32(
    int64_t rows, int64_t columns, const float* x, const int32_t* labels, float* grad_x) {
  const auto kernel = float_table().cross_entropy_f32;
  const float scale = 1.0f / static_cast<float>(rows);
  Buffer<float> loss(rows);
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    const int64_t i = r * columns;
    kernel(end - r,
           columns,
           x + i,
           labels + r,
           scale,
           loss.data() + r,
           grad_x == nullptr ? nullptr : grad_x + i);
  });
  return sum_f32(rows, loss.data()) * scale;
}

}  // namespace quantrain::kernels
