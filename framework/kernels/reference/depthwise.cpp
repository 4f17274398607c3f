#include <algorithm>
#include <vector>

#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {
namespace {

/// Calls f(index in w, index in x, index in y) for every product of the output lines [begin, end).
template <class F>
void for_taps(const PoolShape& s, int64_t begin, int64_t end, F&& f) {
  for (int64_t line = begin; line < end; ++line) {
    for (int64_t j = 0; j < s.ow; ++j) {
      for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) {
        const int64_t u = line % s.oh * s.stride_h - s.pad_h + tap / s.kw * s.dilation_h;
        const int64_t v = j * s.stride_w - s.pad_w + tap % s.kw * s.dilation_w;
        if (u < 0 || u >= s.h || v < 0 || v >= s.w) continue;
        for (int64_t c = 0; c < s.c; ++c) {
          f(tap * s.c + c,
            ((line / s.oh * s.h + u) * s.w + v) * s.c + c,
            (line * s.ow + j) * s.c + c);
        }
      }
    }
  }
}

}  // namespace

// Writes the output lines [begin, end) of y; w is [kh, kw, c].
void depthwise_f32(
    const DepthwiseF32& p, int64_t begin, int64_t end, const float* x, const float* w, float* y) {
  const int64_t line = p.pool.ow * p.pool.c;
  if (!p.accumulate) {
    for (int64_t i = begin * line; i < end * line; ++i) y[i] = 0.0f;
  }
  for_taps(
      p.pool, begin, end, [&](int64_t tap, int64_t in, int64_t out) { y[out] += x[in] * w[tap]; });
  for (int64_t i = begin * line; i < end * line; ++i) {
    if (p.bias != nullptr) y[i] += p.bias[i % p.pool.c];
    y[i] = y[i] < p.lo ? p.lo : y[i] > p.hi ? p.hi : y[i];
  }
}

// Writes the input lines [begin, end) of grad_x.
void depthwise_backward_data_f32(const DepthwiseF32& p,
                                 int64_t begin,
                                 int64_t end,
                                 const float* grad_y,
                                 const float* w,
                                 float* grad_x) {
  const PoolShape& s = p.pool;
  const int64_t line = s.w * s.c;
  if (begin == end) return;
  for (int64_t i = begin * line; i < end * line; ++i) grad_x[i] = 0.0f;
  for_taps(s,
           begin / s.h * s.oh,
           ((end - 1) / s.h + 1) * s.oh,
           [&](int64_t tap, int64_t in, int64_t out) {
             if (in >= begin * line && in < end * line) grad_x[in] += grad_y[out] * w[tap];
           });
}

// Writes grad_w [kh, kw, c], summed over the output lines [begin, end).
void depthwise_backward_weights_f32(const DepthwiseF32& p,
                                    int64_t begin,
                                    int64_t end,
                                    const float* x,
                                    const float* grad_y,
                                    float* grad_w) {
  std::vector<double> sums(static_cast<size_t>(p.pool.kh * p.pool.kw * p.pool.c));
  for_taps(p.pool, begin, end, [&](int64_t tap, int64_t in, int64_t out) {
    sums[static_cast<size_t>(tap)] += static_cast<double>(x[in] * grad_y[out]);
  });
  std::transform(
      sums.begin(), sums.end(), grad_w, [](double sum) { return static_cast<float>(sum); });
}

}  // namespace quantrain::kernels::reference
