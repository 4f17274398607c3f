#include "framework/kernels/float/optimizer.hpp"

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::kernels {

void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w) {
  const auto kernel = float_table().sgd_f32;
  parallel_for(n, kStepGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, step, grad + i, velocity == nullptr ? nullptr : velocity + i, w + i);
  });
}

void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w) {
  const auto kernel = float_table().adam_f32;
  parallel_for(n, kStepGrain, [&](int64_t i, int64_t end) {
    kernel(end - i, step, grad + i, m + i, v + i, w + i);
  });
}

}  // namespace quantrain::kernels
