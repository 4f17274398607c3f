#pragma once

#include <type_traits>

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/depthwise.ipp"
#include "framework/kernels/simd/lanes.hpp"

// The weight gradient of depthwise convolutions. Lanes run along the channels; weights [kh, kw, c].
namespace quantrain::kernels::simd {

/// A line has few outputs if it has at most this many. See depthwise_backward_weights_f32().
inline constexpr int64_t kFewOutputs = 12;

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
template <class Arch, class Vector, int U, int V, class At>
inline QUANTRAIN_INLINE_TILE void add_line(const At& at,
                                           const PoolShape& s,
                                           const Outputs (&outputs)[V],
                                           const float* x,
                                           int64_t row_step,
                                           const float* grad_y,
                                           float* sums,
                                           int64_t sums_step) {
  const int64_t tap_step = s.dilation_w * s.c;
  const int64_t x_step = s.stride_w * s.c;
  Vector chains[U][V];
  repeat<U * V>([&](auto i) QUANTRAIN_INLINE { chains[i / V][i % V] = Vector(0.0f); });
  const auto add = [&](const Vector& grad, int64_t j, auto v) QUANTRAIN_INLINE {
    const float* const from = x + v * tap_step + j * x_step;
    repeat<U>([&](auto u) QUANTRAIN_INLINE {
      chains[u][v] = fused<Arch>(at.load(from + u * row_step), grad, chains[u][v]);
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
  // loads each column once and keeps V columns, if there are registers for these columns, the sums
  // and one gradient. Three registers must be left: with two, the loop of three taps and 16
  // channels was slower on AVX2.
  constexpr int kParts = static_cast<int>(sizeof(Vector) / sizeof(Batch<float, Arch>));
  constexpr bool kKeepsColumns = V > 1 && (2 * U * V + 1) * kParts + 3 <= kRegisters<Arch>;
  if constexpr (kKeepsColumns) {
    if (x_step == tap_step && j + 2 * V <= all_end) {
      Vector window[U][V];
      const auto load = [&](int64_t column, auto slot) QUANTRAIN_INLINE {
        repeat<U>([&](auto u) QUANTRAIN_INLINE {
          window[u][slot] = at.load(x + column * x_step + u * row_step);
        });
      };
      repeat<V - 1>([&](auto v) QUANTRAIN_INLINE { load(j + v, v); });
      for (; j + V <= all_end; j += V) {
        repeat<V>([&](auto t) QUANTRAIN_INLINE {
          load(j + t + V - 1, std::integral_constant<int, (t + V - 1) % V>());
          const Vector grad = at.load(grad_y + (j + t) * s.c);
          repeat<U * V>([&](auto i) QUANTRAIN_INLINE {
            constexpr int u = i / V;
            constexpr int v = i % V;
            chains[u][v] = fused<Arch>(window[u][(t + v) % V], grad, chains[u][v]);
          });
        });
      }
    }
  }
  const float* next = grad_y + j * s.c;
  for (; j < all_end; ++j, next += s.c) {
    const Vector grad = at.load(next);
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
  using Vector = Batch<float, Arch>;
  Vector grads[n];
  repeat<n>([&](auto j) QUANTRAIN_INLINE { grads[j] = Vector::load_unaligned(grad_y + j * s.c); });
  repeat<3>([&](auto u) QUANTRAIN_INLINE {
    Vector chains[3];
    repeat<3>([&](auto v) QUANTRAIN_INLINE { chains[v] = Vector(0.0f); });
    repeat<n>([&](auto q) QUANTRAIN_INLINE {
      const Vector value = Vector::load_unaligned(x + u * row_step + (q + 1) * s.c);
      repeat<3>([&](auto v) QUANTRAIN_INLINE {
        constexpr int j = q + 1 - v;
        if constexpr (j >= 0 && j < n) chains[v] = fused<Arch>(value, grads[j], chains[v]);
      });
    });
    repeat<3>([&](auto v) QUANTRAIN_INLINE {
      float* const sum = sums + u * sums_step + v * s.c;
      (Vector::load_unaligned(sum) + chains[v]).store_unaligned(sum);
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
  constexpr int64_t kEach = L::kEach;
  const int64_t whole = s.c / kEach * kEach;
  const int64_t sums_step = s.kw * s.c;
  for (int64_t i = 0; i < s.kh * sums_step; ++i) grad_w[i] = 0.0f;
  const int64_t row_step = s.dilation_h * s.w * s.c;
  const bool is_short = s.kw == 3 && s.stride_w == 1 && s.dilation_w == 1 && s.pad_w == 1 &&
                        s.ow >= kSmallestLineTile && s.ow <= kLargestLineTile;
  // There are two forms. The first `blocks` channels are summed 16 at a time, in several vectors,
  // and one row of taps at a time: then a cache line of x is used up at once. The other channels
  // are summed one vector and three rows of taps at a time, which loads the gradients less often.
  // This is faster on lines of few outputs, or with 32 registers, unless cache lines compete for
  // places (see try_depthwise_lines()).
  const bool in_blocks =
      L::kParts > 1 && !is_short && ((kInBlocks<Arch> && s.ow > kFewOutputs) || s.c % 256 == 0);
  const int64_t blocks = in_blocks ? s.c / 16 * 16 : 0;
  // Sums `width` columns of taps, beginning at column v.
  const auto columns = [&](int64_t v, const auto& outputs, auto width) QUANTRAIN_INLINE {
    constexpr std::integral_constant<int, 1> kOne;
    constexpr std::integral_constant<int, 3> kThree;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t top = line % s.oh * s.stride_h - s.pad_h;
      const TapsInside inside = taps_inside(top, s.kh, s.dilation_h, s.h);
      const float* const image = x + (line / s.oh * s.h + top) * s.w * s.c;
      const float* const grad = grad_y + line * s.ow * s.c;
      const auto add = [&](int64_t u, auto height, int64_t c, auto at) QUANTRAIN_INLINE {
        using Vector = decltype(at.load(x));
        const float* const from = image + u * row_step + (v * s.dilation_w - s.pad_w) * s.c + c;
        float* const to = grad_w + u * sums_step + v * s.c + c;
        if constexpr (width == 1) {
          const int64_t last = outputs[0].end;
          for (int64_t j = outputs[0].begin; j < last; j += kLongestChain) {
            const Outputs part[] = {{j, last - j < kLongestChain ? last : j + kLongestChain}};
            add_line<Arch, Vector, height, 1>(at, s, part, from, row_step, grad + c, to, sums_step);
          }
        } else {
          add_line<Arch, Vector, height, width>(
              at, s, outputs, from, row_step, grad + c, to, sums_step);
        }
      };
      int64_t u = inside.first;
      for (; u + 3 <= inside.end; u += 3) {
        if constexpr (width == 3) {
          if (is_short) {
            const float* const from = image + u * row_step - s.c;
            float* const to = grad_w + u * sums_step;
            repeat<kLargestLineTile - kSmallestLineTile + 1>([&](auto more) QUANTRAIN_INLINE {
              constexpr int kPixels = kSmallestLineTile + more;
              if (s.ow != kPixels) return;
              for (int64_t c = 0; c < whole; c += kEach) {
                add_short_line<Arch, kPixels>(s, from + c, row_step, grad + c, to + c, sums_step);
              }
            });
          }
        }
        if (!is_short) {
          for (int64_t c = blocks; c < whole; c += kEach) add(u, kThree, c, AllLanes<Arch>());
        }
        if (whole < s.c) add(u, kThree, whole, FirstLanes<Arch>{s.c - whole});
      }
      for (; u < inside.end; ++u) {
        for_vectors<Arch>(
            blocks, s.c, [&](int64_t c, auto at) QUANTRAIN_INLINE { add(u, kOne, c, at); });
      }
      if constexpr (L::kParts > 1) {
        for (int64_t i = inside.first; i < inside.end; ++i) {
          for (int64_t c = 0; c < blocks; c += 16) add(i, kOne, c, Whole<Arch>());
        }
      }
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
