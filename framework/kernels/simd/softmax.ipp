#pragma once

#include "framework/kernels/simd/columns.ipp"

namespace quantrain::kernels::simd {

/// Natural logarithm of x, which is a sum of exponentials and at least 1. It is computed in double:
/// x = m 2^e with m in [0.75, 1.5), and log x = e log 2 + log m. A series computes
/// log m = 2 artanh((m - 1) / (m + 1)).
template <class Arch>
float log_of_sum(float x) {
  if (!(x < __builtin_inff())) return x;
  int32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  const int32_t e = (bits - 0x3f400000) >> 23;
  bits -= e * (1 << 23);
  float m;
  __builtin_memcpy(&m, &bits, sizeof(m));
  const double s = (static_cast<double>(m) - 1.0) / (static_cast<double>(m) + 1.0);
  const double t = s * s;
  double series = 1.0 / 13.0;
  for (int k = 11; k > 0; k -= 2) series = series * t + 1.0 / k;
  return static_cast<float>(e * 0.693147180559945309 + 2.0 * s * series);
}

template <class Arch>
inline QUANTRAIN_INLINE float largest(int64_t n, const float* x) {
  constexpr float kNone = -__builtin_inff();
  Lanes<Arch> top(kNone);
  for_lanes<Arch>(
      n, [&](int64_t i, auto at) QUANTRAIN_INLINE { top = max(top, at.load(x + i, kNone)); });
  return join(top, [](float a, float b) QUANTRAIN_INLINE { return a > b ? a : b; });
}

/// Sum of e^(x - top). Calls use(i, at, e) for each group of up to 16 elements, where e holds the
/// exponentials of the group, i is the index of its first element, and `at` is as in for_lanes.
template <class Arch, class Use>
inline QUANTRAIN_INLINE float exp_sum(int64_t n, const float* x, float top, const Use& use) {
  using L = Lanes<Arch>;
  const L highest(top);
  return sum(
      sum_of_parts<L>(n, 16 * kLongestChain, [&](int64_t begin, int64_t end) QUANTRAIN_INLINE {
        L chain(0.0f);
        for_lanes<Arch>(end - begin, [&](int64_t i, auto at) QUANTRAIN_INLINE {
          const L e = exp(at.load(x + begin + i, -__builtin_inff()) - highest);
          chain = chain + e;
          use(begin + i, at, e);
        });
        return chain;
      }));
}

template <class Arch>
void softmax_f32(int64_t rows, int64_t columns, const float* x, float* y) {
  using L = Lanes<Arch>;
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const L total(exp_sum<Arch>(columns,
                                x,
                                largest<Arch>(columns, x),
                                [&](int64_t i, auto at, const L& e)
                                    QUANTRAIN_INLINE { at.store(y + i, e); }));
    for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      at.store(y + i, at.load(y + i) / total);
    });
  }
}

template <class Arch>
void log_softmax_f32(int64_t rows, int64_t columns, const float* x, float* y) {
  using L = Lanes<Arch>;
  const auto nothing = [](int64_t, auto, const L&) QUANTRAIN_INLINE {};
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const float top = largest<Arch>(columns, x);
    const L highest(top);
    const L log_sum(log_of_sum<Arch>(exp_sum<Arch>(columns, x, top, nothing)));
    for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      at.store(y + i, (at.load(x + i) - highest) - log_sum);
    });
  }
}

template <class Arch>
void softmax_backward_f32(
    int64_t rows, int64_t columns, const float* y, const float* grad_y, float* grad_x) {
  using L = Lanes<Arch>;
  for (int64_t r = 0; r < rows; ++r, y += columns, grad_y += columns, grad_x += columns) {
    const L total(sum(sum_of_parts<L>(
        columns, 16 * kLongestChain, [&](int64_t begin, int64_t end) QUANTRAIN_INLINE {
          L chain(0.0f);
          for_lanes<Arch>(end - begin, [&](int64_t i, auto at) QUANTRAIN_INLINE {
            chain = fma(at.load(grad_y + begin + i), at.load(y + begin + i), chain);
          });
          return chain;
        })));
    for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      at.store(grad_x + i, at.load(y + i) * (at.load(grad_y + i) - total));
    });
  }
}

template <class Arch>
void log_softmax_backward_f32(
    int64_t rows, int64_t columns, const float* y, const float* grad_y, float* grad_x) {
  using L = Lanes<Arch>;
  for (int64_t r = 0; r < rows; ++r, y += columns, grad_y += columns, grad_x += columns) {
    float total;
    sum_f32<Arch>(columns, grad_y, &total);
    const L minus_total(-total);
    for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      at.store(grad_x + i, fma(exp(at.load(y + i)), minus_total, at.load(grad_y + i)));
    });
  }
}

template <class Arch>
void cross_entropy_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const int32_t* labels,
                       float scale,
                       float* loss,
                       float* grad_x) {
  using L = Lanes<Arch>;
  for (int64_t r = 0; r < rows; ++r, x += columns) {
    const float top = largest<Arch>(columns, x);
    float* const grad = grad_x == nullptr ? nullptr : grad_x + r * columns;
    const float total =
        exp_sum<Arch>(columns, x, top, [&](int64_t i, auto at, const L& e) QUANTRAIN_INLINE {
          if (grad != nullptr) at.store(grad + i, e);
        });
    loss[r] = log_of_sum<Arch>(total) - (x[labels[r]] - top);
    if (grad == nullptr) continue;
    const L divisor(total);
    const L factor(scale);
    const float label = grad[labels[r]] / total - 1.0f;
    for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      at.store(grad + i, at.load(grad + i) / divisor * factor);
    });
    grad[labels[r]] = label * scale;
  }
}

}  // namespace quantrain::kernels::simd
