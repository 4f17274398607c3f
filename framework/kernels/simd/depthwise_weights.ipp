#pragma once

#include <type_traits>

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/depthwise.ipp"
#include "framework/kernels/simd/lanes.hpp"

// The weight gradient of depthwise convolutions. Lanes run along the channels; weights [kh, kw, c].
namespace quantrain::kernels::simd {

/// The outputs [begin, end) of a line: those whose window has a given tap inside the image.
struct Outputs {
  int64_t begin, end;
};
inline QUANTRAIN_INLINE Outputs outputs_with_tap(const PoolShape& s, int64_t v) {
  const int64_t before = s.pad_w - v * s.dilation_w;
  const int64_t begin = before > 0 ? (before + s.stride_w - 1) / s.stride_w : 0;
  const int64_t inside = s.w - 1 + before < 0 ? 0 : (s.w - 1 + before) / s.stride_w + 1;
  return {begin, inside < s.ow ? inside : s.ow};
}

/// Adds the products of one line of outputs to the sums of U rows of V taps. Each tap has its own
/// chain of multiply-adds over the line. Several chains side by side hide the latency. For output
/// j, tap (u, v) reads
///   x + u * row_step + v * dilation_w * c + j * stride_w * c.
/// The tap's sum is at sums + u * sums_step + v * c.
template <class Arch, int U, int V, class At>
inline QUANTRAIN_INLINE_TILE void add_line(const At& at,
                                           const PoolShape& s,
                                           const Outputs (&outputs)[V],
                                           const float* x,
                                           int64_t row_step,
                                           const float* grad_y,
                                           float* sums,
                                           int64_t sums_step) {
  using L = Lanes<Arch>;
  const int64_t tap_step = s.dilation_w * s.c;
  const int64_t x_step = s.stride_w * s.c;
  L chains[U][V];
  repeat<U * V>([&](auto i) QUANTRAIN_INLINE { chains[i / V][i % V] = L(0.0f); });
  const auto add = [&](const L& grad, int64_t j, auto v) QUANTRAIN_INLINE {
    const float* const from = x + v * tap_step + j * x_step;
    repeat<U>([&](auto u) QUANTRAIN_INLINE {
      chains[u][v] = fma(at.load(from + u * row_step), grad, chains[u][v]);
    });
  };
  const auto add_outputs = [&](int64_t begin, int64_t end, auto v) QUANTRAIN_INLINE {
    for (int64_t j = begin; j < end; ++j) add(at.load(grad_y + j * s.c), j, v);
  };
  // The outputs of tap v + 1 begin and end no later than those of tap v. [all_begin, all_end) are
  // the outputs that all V taps share.
  const int64_t all_begin = outputs[0].begin;
  const int64_t all_end = outputs[V - 1].end > all_begin ? outputs[V - 1].end : all_begin;
  repeat<V>([&](auto v) QUANTRAIN_INLINE {
    add_outputs(outputs[v].begin, outputs[v].end < all_begin ? outputs[v].end : all_begin, v);
  });
  int64_t j = all_begin;
  // If windows are one tap apart, V neighbouring outputs read the same column of x. Then the loop
  // loads each column once and keeps V columns. Without AVX-512 there are too few registers.
  if (L::kParts == 1 && V > 1 && x_step == tap_step && j + 2 * V <= all_end) {
    L window[U][V];
    const auto load = [&](int64_t column, auto slot) QUANTRAIN_INLINE {
      repeat<U>([&](auto u) QUANTRAIN_INLINE {
        window[u][slot] = at.load(x + column * x_step + u * row_step);
      });
    };
    repeat<V - 1>([&](auto v) QUANTRAIN_INLINE { load(j + v, v); });
    for (; j + V <= all_end; j += V) {
      repeat<V>([&](auto t) QUANTRAIN_INLINE {
        load(j + t + V - 1, std::integral_constant<int, (t + V - 1) % V>());
        const L grad = at.load(grad_y + (j + t) * s.c);
        repeat<U * V>([&](auto i) QUANTRAIN_INLINE {
          constexpr int u = i / V;
          constexpr int v = i % V;
          chains[u][v] = fma(window[u][(t + v) % V], grad, chains[u][v]);
        });
      });
    }
  }
  for (; j < all_end; ++j) {
    const L grad = at.load(grad_y + j * s.c);
    repeat<V>([&](auto v) QUANTRAIN_INLINE { add(grad, j, v); });
  }
  repeat<V>([&](auto v) QUANTRAIN_INLINE { add_outputs(all_end, outputs[v].end, v); });
  repeat<U * V>([&](auto i) QUANTRAIN_INLINE {
    float* const sum = sums + i / V * sums_step + i % V * s.c;
    at.store(sum, at.load(sum) + chains[i / V][i % V]);
  });
}

/// add_line for three rows and columns of taps on a line of n pixels with n outputs and a padding
/// of one. x is one pixel before the line. The gradients stay in registers, and each float of a row
/// of x is loaded once.
template <class Arch, int n>
inline QUANTRAIN_INLINE_TILE void add_short_line(const PoolShape& s,
                                                 const float* x,
                                                 int64_t row_step,
                                                 const float* grad_y,
                                                 float* sums,
                                                 int64_t sums_step) {
  using L = Lanes<Arch>;
  L grads[n];
  repeat<n>([&](auto j) QUANTRAIN_INLINE { grads[j] = L::load(grad_y + j * s.c); });
  repeat<3>([&](auto u) QUANTRAIN_INLINE {
    L chains[3];
    repeat<3>([&](auto v) QUANTRAIN_INLINE { chains[v] = L(0.0f); });
    repeat<n>([&](auto q) QUANTRAIN_INLINE {
      const L value = L::load(x + u * row_step + (q + 1) * s.c);
      repeat<3>([&](auto v) QUANTRAIN_INLINE {
        constexpr int j = q + 1 - v;
        if constexpr (j >= 0 && j < n) chains[v] = fma(value, grads[j], chains[v]);
      });
    });
    repeat<3>([&](auto v) QUANTRAIN_INLINE {
      float* const sum = sums + u * sums_step + v * s.c;
      (L::load(sum) + chains[v]).store(sum);
    });
  });
}

template <class Arch>
void depthwise_backward_weights_f32(const DepthwiseF32& p,
                                    int64_t begin,
                                    int64_t end,
                                    const float* x,
                                    const float* grad_y,
                                    float* grad_w) {
  using L = Lanes<Arch>;
  const PoolShape& s = p.pool;
  const int64_t sums_step = s.kw * s.c;
  for (int64_t i = 0; i < s.kh * sums_step; ++i) grad_w[i] = 0.0f;
  const int64_t row_step = s.dilation_h * s.w * s.c;
  const bool is_short = s.kw == 3 && s.stride_w == 1 && s.dilation_w == 1 && s.pad_w == 1 &&
                        s.ow >= kSmallestLineTile && s.ow <= kLargestLineTile;
  // Sums `width` columns of taps, beginning at column v. Takes three rows of taps at a time if
  // there are enough registers, else one row.
  const auto columns = [&](int64_t v, const auto& outputs, auto width) QUANTRAIN_INLINE {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t top = line % s.oh * s.stride_h - s.pad_h;
      const TapsInside inside = taps_inside(top, s.kh, s.dilation_h, s.h);
      const float* const image = x + (line / s.oh * s.h + top) * s.w * s.c;
      for_lanes<Arch>(s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE {
        using At = decltype(at);
        int64_t u = inside.first;
        const auto rows = [&](auto height) QUANTRAIN_INLINE {
          const float* const from = image + u * row_step + (v * s.dilation_w - s.pad_w) * s.c + c;
          const float* const grad = grad_y + line * s.ow * s.c + c;
          float* const sums = grad_w + u * sums_step + v * s.c + c;
          if constexpr (height == 3 && width == 3 && std::is_same_v<At, Whole<Arch>>) {
            if (is_short) {
              repeat<kLargestLineTile - kSmallestLineTile + 1>([&](auto more) QUANTRAIN_INLINE {
                constexpr int kPixels = kSmallestLineTile + more;
                if (s.ow != kPixels) return;
                add_short_line<Arch, kPixels>(s, from, row_step, grad, sums, sums_step);
              });
              u += height;
              return;
            }
          }
          if constexpr (width == 1) {
            const int64_t last = outputs[0].end;
            for (int64_t j = outputs[0].begin; j < last; j += kLongestChain) {
              const Outputs part[] = {{j, last - j < kLongestChain ? last : j + kLongestChain}};
              add_line<Arch, height, 1>(at, s, part, from, row_step, grad, sums, sums_step);
            }
          } else {
            add_line<Arch, height, width>(at, s, outputs, from, row_step, grad, sums, sums_step);
          }
          u += height;
        };
        if constexpr (L::kParts == 1) {
          while (u + 3 <= inside.end) rows(std::integral_constant<int, 3>());
        }
        while (u < inside.end) rows(std::integral_constant<int, 1>());
      });
    }
  };
  const auto taps = [&](int64_t v, auto width) QUANTRAIN_INLINE {
    Outputs outputs[width()];
    for (int i = 0; i < width; ++i) outputs[i] = outputs_with_tap(s, v + i);
    columns(v, outputs, width);
  };
  int64_t v = 0;
  // If a line has more than kLongestChain outputs, each tap's sum is cut into chains. The first
  // chain begins at the tap's first output, which can differ between the columns of taps. So each
  // column is summed alone.
  if (s.ow <= kLongestChain) {
    for (; v + 3 <= s.kw; v += 3) taps(v, std::integral_constant<int, 3>());
    for (; v + 2 <= s.kw; v += 2) taps(v, std::integral_constant<int, 2>());
  }
  for (; v < s.kw; ++v) taps(v, std::integral_constant<int, 1>());
}

}  // namespace quantrain::kernels::simd
