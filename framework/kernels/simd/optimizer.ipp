#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Optimizer steps.
namespace quantrain::kernels::simd {

template <class Arch>
void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w) {
  using L = Lanes<Arch>;
  const L decay(step.weight_decay);
  const L scale(step.grad_scale);
  const L momentum(step.momentum);
  const L minus_rate(-step.learning_rate);
  for_lanes<Arch>(n, [&](int64_t i, auto at) QUANTRAIN_INLINE {
    const L before = at.load(w + i);
    const L g = fma(scale, at.load(grad + i), decay * before);
    L v = g;
    if (velocity != nullptr) {
      if (!step.first_step) v = fma(momentum, at.load(velocity + i), g);
      at.store(velocity + i, v);
    }
    at.store(w + i, fma(minus_rate, step.nesterov ? fma(momentum, v, g) : v, before));
  });
}

template <class Arch>
void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w) {
  using L = Lanes<Arch>;
  const L scale(step.grad_scale);
  const L decay(step.decoupled ? 0.0f : step.weight_decay);
  const L keep(step.decoupled ? 1.0f - step.learning_rate * step.weight_decay : 1.0f);
  const L beta1(step.beta1);
  const L beta2(step.beta2);
  const L rest1(1.0f - step.beta1);
  const L rest2(1.0f - step.beta2);
  const L minus_rate(-step.learning_rate / step.correction1);
  const L correction2(1.0f / step.correction2);
  const L epsilon(step.epsilon);
  for_lanes<Arch>(n, [&](int64_t i, auto at) QUANTRAIN_INLINE {
    const L before = at.load(w + i);
    const L g = fma(scale, at.load(grad + i), decay * before);
    const L mean = fma(beta1, at.load(m + i), rest1 * g);
    const L square = fma(beta2, at.load(v + i), rest2 * (g * g));
    at.store(m + i, mean);
    at.store(v + i, square);
    at.store(w + i, fma(minus_rate, mean / (sqrt(square * correction2) + epsilon), keep * before));
  });
}

}  // namespace quantrain::kernels::simd
