#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

namespace quantrain::kernels::simd {

template <class Arch, class F>
inline QUANTRAIN_INLINE void map1(int64_t n, const float* x, float* y, const F& f) {
  for_lanes<Arch>(n,
                  [&](int64_t i, auto at) QUANTRAIN_INLINE { at.store(y + i, f(at.load(x + i))); });
}

template <class Arch, class F>
inline QUANTRAIN_INLINE void map2(int64_t n, const float* a, const float* b, float* y, const F& f) {
  for_lanes<Arch>(n, [&](int64_t i, auto at) QUANTRAIN_INLINE {
    at.store(y + i, f(at.load(a + i), at.load(b + i, 1.0f)));
  });
}

template <class Arch>
void add_f32(int64_t n, const float* a, const float* b, float* y) {
  using L = Lanes<Arch>;
  map2<Arch>(n, a, b, y, [](const L& p, const L& q) QUANTRAIN_INLINE { return p + q; });
}

template <class Arch>
void sub_f32(int64_t n, const float* a, const float* b, float* y) {
  using L = Lanes<Arch>;
  map2<Arch>(n, a, b, y, [](const L& p, const L& q) QUANTRAIN_INLINE { return p - q; });
}

template <class Arch>
void mul_f32(int64_t n, const float* a, const float* b, float* y) {
  using L = Lanes<Arch>;
  map2<Arch>(n, a, b, y, [](const L& p, const L& q) QUANTRAIN_INLINE { return p * q; });
}

template <class Arch>
void div_f32(int64_t n, const float* a, const float* b, float* y) {
  using L = Lanes<Arch>;
  map2<Arch>(n, a, b, y, [](const L& p, const L& q) QUANTRAIN_INLINE { return p / q; });
}

template <class Arch>
void affine_f32(int64_t n, const float* x, float scale, float shift, float* y) {
  using L = Lanes<Arch>;
  const L factor(scale);
  const L summand(shift);
  map1<Arch>(n, x, y, [&](const L& v) QUANTRAIN_INLINE { return fma(v, factor, summand); });
}

template <class Arch>
void relu_f32(int64_t n, const float* x, float hi, float* y, uint8_t* mask) {
  using L = Lanes<Arch>;
  const L zero(0.0f);
  const L top(hi);
  for_lanes<Arch>(n, [&](int64_t i, auto at) QUANTRAIN_INLINE {
    const L v = at.load(x + i);
    at.store(y + i, min(top, max(zero, v)));
    if (mask == nullptr) return;
    const uint32_t bits = ((v > zero) & (v < top)).bits();
    mask[i / 8] = static_cast<uint8_t>(bits);
    if (at.count() > 8) mask[i / 8 + 1] = static_cast<uint8_t>(bits >> 8);
  });
}

template <class Arch>
void exp_f32(int64_t n, const float* x, float* y) {
  map1<Arch>(n, x, y, [](const Lanes<Arch>& v) QUANTRAIN_INLINE { return exp(v); });
}

template <class Arch>
void sigmoid_f32(int64_t n, const float* x, float* y) {
  using L = Lanes<Arch>;
  const L one(1.0f);
  map1<Arch>(n, x, y, [&](const L& v) QUANTRAIN_INLINE { return one / (one + exp(L(0.0f) - v)); });
}

// Near 0 an odd polynomial (Cephes' tanhf), elsewhere 1 - 2 / (e^2x + 1).
template <class Arch>
void tanh_f32(int64_t n, const float* x, float* y) {
  using L = Lanes<Arch>;
  const L one(1.0f);
  map1<Arch>(n, x, y, [&](const L& v) QUANTRAIN_INLINE {
    const L square = v * v;
    L p = fma(L(-5.70498872745e-3f), square, L(2.06390887954e-2f));
    p = fma(p, square, L(-5.37397155531e-2f));
    p = fma(p, square, L(1.33314422036e-1f));
    p = fma(p, square, L(-3.33332819422e-1f));
    const L near = fma(p * square, v, v);
    const L far = one - L(2.0f) / (exp(v + v) + one);
    return select(square < L(0.390625f), near, far);
  });
}

template <class Arch>
void sigmoid_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  using L = Lanes<Arch>;
  const L one(1.0f);
  map2<Arch>(n, y, grad_y, grad_x, [&](const L& v, const L& grad) QUANTRAIN_INLINE {
    return grad * (v * (one - v));
  });
}

template <class Arch>
void tanh_backward_f32(int64_t n, const float* y, const float* grad_y, float* grad_x) {
  using L = Lanes<Arch>;
  const L one(1.0f);
  map2<Arch>(n, y, grad_y, grad_x, [&](const L& v, const L& grad) QUANTRAIN_INLINE {
    return grad * (one - v * v);
  });
}

template <class Arch>
void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]) / 255.0f;
}

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
