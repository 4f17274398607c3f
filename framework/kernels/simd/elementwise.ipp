#pragma once

#include "framework/core/splitmix64.hpp"
#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Elementwise functions.
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

// Near 0, an odd polynomial (Cephes' tanhf); elsewhere 1 - 2 / (e^(2x) + 1).
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

// A draw is a random number of 24 bits. A vector of draws joins two vectors of 64-bit numbers: one
// for the even lanes, one for the odd lanes. To compare draws as floats, the kernel adds each draw
// to the bit pattern of 1.0f. The sum is the bit pattern of a float in [1, 4). Such floats have the
// same order as their bit patterns.
template <class Arch>
void dropout_f32(int64_t n, const DropoutF32& p, const float* x, float* y) {
  using L = Lanes<Arch>;
  using Register = typename L::V::register_type;
  using Vector = typename Numbers<sizeof(Register)>::Vector;
  constexpr uint32_t kOne = 0x3f800000;
  Vector even;
  for (int i = 0; i < L::kEach / 2; ++i)
    even[i] = p.key + static_cast<uint64_t>(2 * i + 1) * SplitMix64::kStep;
  const L scale(p.scale);
  const L zero(0.0f);
  const L first_kept(__builtin_bit_cast(float, kOne + static_cast<uint32_t>(p.dropped)));
  for_lanes<Arch>(n, [&](int64_t i, auto at) QUANTRAIN_INLINE {
    L draws;
    for (int part = 0; part < L::kParts; ++part) {
      const Vector numbers = even + static_cast<uint64_t>(i + part * L::kEach) * SplitMix64::kStep;
      const Vector low = SplitMix64::mix(numbers) >> 40;
      const Vector high = SplitMix64::mix(numbers + SplitMix64::kStep) >> 40 << 32;
      draws.part[part] = (Register)((low | high) + (uint64_t{kOne} << 32 | kOne));
    }
    at.store(y + i, select(draws < first_kept, zero, at.load(x + i) * scale));
  });
}

template <class Arch>
void bytes_f32(int64_t n, const uint8_t* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]) / 255.0f;
}

}  // namespace quantrain::kernels::simd
