#include "framework/kernels/float/pooling.hpp"

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/pool_shape.hpp"

namespace quantrain::kernels {
namespace {

/// Images per block of parallel_for. A block has about kGrain elements and at least one image.
int64_t image_grain(const Conv2dShape& s) {
  constexpr int64_t kGrain = 65536;
  return kGrain / (s.h * s.w * s.c + s.oh() * s.ow() * s.c + 1) + 1;
}

}  // namespace

void max_pool2d_f32(const Conv2dShape& shape, const float* x, float* y, uint16_t* position) {
  const auto kernel = float_table().max_pool2d_f32;
  const PoolShape pool = pool_shape(shape);
  parallel_for(shape.n, image_grain(shape), [&](int64_t i, int64_t end) {
    kernel(pool, i, end, x, y, position);
  });
}

void max_pool2d_backward_f32(const Conv2dShape& shape,
                             const float* grad_y,
                             const uint16_t* position,
                             float* grad_x) {
  const auto kernel = float_table().max_pool2d_backward_f32;
  const PoolShape pool = pool_shape(shape);
  parallel_for(shape.n, image_grain(shape), [&](int64_t i, int64_t end) {
    kernel(pool, i, end, grad_y, position, grad_x);
  });
}

void avg_pool2d_f32(const Conv2dShape& shape, int64_t divisor, const float* x, float* y) {
  const auto kernel = float_table().avg_pool2d_f32;
  const PoolShape pool = pool_shape(shape);
  parallel_for(shape.n, image_grain(shape), [&](int64_t i, int64_t end) {
    kernel(pool, i, end, divisor, x, y);
  });
}

void avg_pool2d_backward_f32(const Conv2dShape& shape,
                             int64_t divisor,
                             const float* grad_y,
                             float* grad_x) {
  const auto kernel = float_table().avg_pool2d_backward_f32;
  const PoolShape pool = pool_shape(shape);
  parallel_for(shape.n, image_grain(shape), [&](int64_t i, int64_t end) {
    kernel(pool, i, end, divisor, grad_y, grad_x);
  });
}

}  // namespace quantrain::kernels
