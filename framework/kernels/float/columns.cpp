#include "framework/kernels/float/columns.hpp"

#include <algorithm>

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/partial_sums.hpp"

namespace quantrain::kernels {
namespace {

constexpr int64_t kMostChunks = 64;

/// Calls chunk(begin, end, sums) for the chunks of [0, rows). Each chunk writes `width` sums of its
/// own. A binary tree adds up these sums. The shape of the tree depends on `rows` and `columns`
/// alone. If there are no rows, the sums are 0.
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

void scale_rows_f32(int64_t rows, int64_t columns, const float* x, const float* factors, float* y) {
  const auto kernel = float_table().scale_rows_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    if (columns <= kGrain)
      return kernel(end - r, columns, x + r * columns, factors + r, y + r * columns);
    // A row of several blocks. Adding -0 changes no product, not even 0 or -0.
    for (; r < end; ++r) affine_f32(columns, x + r * columns, factors[r], -0.0f, y + r * columns);
  });
}

void row_dots_f32(int64_t rows, int64_t columns, const float* a, const float* b, float* dots) {
  const auto kernel = float_table().row_dots_f32;
  parallel_for(rows, row_grain(columns), [&](int64_t r, int64_t end) {
    if (columns <= kGrain)
      return kernel(end - r, columns, a + r * columns, b + r * columns, dots + r);
    Buffer<float> products(columns);  // a row of several blocks
    for (; r < end; ++r) {
      mul_f32(columns, a + r * columns, b + r * columns, products.data());
      dots[r] = sum_f32(columns, products.data());
    }
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

}  // namespace quantrain::kernels
