#include "framework/kernels/float/softmax.hpp"

#include "framework/core/buffer.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::kernels {

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
