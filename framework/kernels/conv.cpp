#include "framework/kernels/conv.hpp"

#include <algorithm>

#include "framework/core/parallel.hpp"

namespace quantrain::kernels {
namespace {

/// Calls f(image, y pixel, kernel pixel, x pixel) for every pair of pixels that a kernel element
/// joins, in one group.
template <class F>
void for_taps(const Conv2dShape& s, int64_t image, F&& f) {
  for (int64_t i = 0; i < s.oh(); ++i) {
    for (int64_t j = 0; j < s.ow(); ++j) {
      for (int64_t u = 0; u < s.kh; ++u) {
        for (int64_t v = 0; v < s.kw; ++v) {
          const int64_t h = i * s.stride_h - s.pad_h + u;
          const int64_t w = j * s.stride_w - s.pad_w + v;
          if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
          f((image * s.oh() + i) * s.ow() + j, u * s.kw + v, (image * s.h + h) * s.w + w);
        }
      }
    }
  }
}

}  // namespace

void conv2d_f32(
    const Conv2dShape& s, const float* x, const float* w, float* y, const EpilogueF32& epilogue) {
  const float hi = epilogue.activation == Activation::kRelu6 ? 6.0f : __builtin_inff();
  const int64_t gc = s.group_c();
  const int64_t go = s.group_o();
  parallel_for(s.n, 1, [&](int64_t image, int64_t) {
    const int64_t pixels = s.oh() * s.ow();
    float* const first = y + image * pixels * s.o;
    if (!epilogue.accumulate) std::fill_n(first, pixels * s.o, 0.0f);
    for_taps(s, image, [&](int64_t out, int64_t tap, int64_t in) {
      for (int64_t o = 0; o < s.o; ++o) {
        const float* const from = x + in * s.c + o / go * gc;
        const float* const weights = w + (o * s.kh * s.kw + tap) * gc;
        float sum = 0.0f;
        for (int64_t c = 0; c < gc; ++c) sum += from[c] * weights[c];
        y[out * s.o + o] += sum;
      }
    });
    for (int64_t i = 0; i < pixels * s.o; ++i) {
      float value = first[i] + (epilogue.bias == nullptr ? 0.0f : epilogue.bias[i % s.o]);
      if (epilogue.activation != Activation::kNone) value = std::clamp(value, 0.0f, hi);
      first[i] = value;
    }
  });
}

void conv2d_backward_data_f32(const Conv2dShape& s,
                              const float* grad_y,
                              const float* w,
                              float* grad_x) {
  const int64_t gc = s.group_c();
  const int64_t go = s.group_o();
  parallel_for(s.n, 1, [&](int64_t image, int64_t) {
    std::fill_n(grad_x + image * s.h * s.w * s.c, s.h * s.w * s.c, 0.0f);
    for_taps(s, image, [&](int64_t out, int64_t tap, int64_t in) {
      for (int64_t o = 0; o < s.o; ++o) {
        const float grad = grad_y[out * s.o + o];
        float* const to = grad_x + in * s.c + o / go * gc;
        const float* const weights = w + (o * s.kh * s.kw + tap) * gc;
        for (int64_t c = 0; c < gc; ++c) to[c] += grad * weights[c];
      }
    });
  });
}

void conv2d_backward_weights_f32(const Conv2dShape& s,
                                 const float* x,
                                 const float* grad_y,
                                 float* grad_w) {
  const int64_t gc = s.group_c();
  const int64_t go = s.group_o();
  std::fill_n(grad_w, s.weight_elements(), 0.0f);
  parallel_for(s.o, std::max<int64_t>(1, s.o / 8), [&](int64_t begin, int64_t end) {
    for (int64_t image = 0; image < s.n; ++image) {
      for_taps(s, image, [&](int64_t out, int64_t tap, int64_t in) {
        for (int64_t o = begin; o < end; ++o) {
          const float grad = grad_y[out * s.o + o];
          const float* const from = x + in * s.c + o / go * gc;
          float* const to = grad_w + (o * s.kh * s.kw + tap) * gc;
          for (int64_t c = 0; c < gc; ++c) to[c] += grad * from[c];
        }
      });
    }
  });
}

}  // namespace quantrain::kernels
