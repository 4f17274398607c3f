#pragma once

#include <type_traits>

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/depthwise_lines.ipp"
#include "framework/kernels/simd/lanes.hpp"

// Depthwise convolutions with lanes along the channels; weights [kh, kw, c].
namespace quantrain::kernels::simd {

/// The taps along one axis that a result needs. The k-th tap reads the float at index
/// from + k * from_step, and its weight is at index weight + k * weight_step. `run` is the number
/// of results with the same taps: this result and those that follow it on the axis. It may also
/// count results beyond the end of the axis. ResultAxis gives the distances between the results.
struct AxisTaps {
  int64_t count, from, from_step, weight, weight_step, run;
};

/// The taps of a window that begins at `start`. The axis has `size` elements, which are `unit`
/// floats apart. The next window begins `stride` elements further on.
inline QUANTRAIN_INLINE AxisTaps window_taps(int64_t start,
                                             int64_t kernel,
                                             int64_t dilation,
                                             int64_t stride,
                                             int64_t size,
                                             int64_t unit,
                                             int64_t weight_unit) {
  const TapsInside taps = taps_inside(start, kernel, dilation, size);
  const bool whole = taps.first == 0 && taps.end == kernel;
  return {taps.end - taps.first,
          (start + taps.first * dilation) * unit,
          dilation * unit,
          taps.first * weight_unit,
          weight_unit,
          whole ? (size - 1 - start - (kernel - 1) * dilation) / stride + 1 : 1};
}

/// The taps for the gradient of one input element. `padded` is the element's position plus the
/// padding. A tap reads the gradient of the output that has multiplied this element by the tap's
/// weight. The axis has `size` outputs, which are `unit` floats apart. Except at the borders,
/// elements that are `stride` apart have the same taps.
inline QUANTRAIN_INLINE AxisTaps gradient_taps(int64_t padded,
                                               int64_t kernel,
                                               int64_t dilation,
                                               int64_t stride,
                                               int64_t size,
                                               int64_t unit,
                                               int64_t weight_unit) {
  int64_t step = 1;  // distance between two neighbouring taps of the element
  while (step < kernel && step * dilation % stride != 0) ++step;
  int64_t first = 0;
  while (first < kernel && (padded - first * dilation) % stride != 0) ++first;
  while (first < kernel && padded - first * dilation >= size * stride) first += step;
  int64_t end = first;
  while (end < kernel && padded - end * dilation >= 0) end += step;
  const int64_t output = first < kernel ? (padded - first * dilation) / stride : 0;
  return {(end - first) / step,
          output * unit,
          -(step * dilation / stride * unit),
          first * weight_unit,
          step * weight_unit,
          end < kernel ? 1 : size - output};
}

/// Whether 16 channels, in several vectors, are computed at a time, so that a cache line is used up
/// at once. With 32 registers, results are computed for one vector of channels at a time: a tile
/// then has more results, so it loads each weight less often.
template <class Arch>
inline constexpr bool kInBlocks = kRegisters<Arch> == 16;

/// The most results that are computed side by side, so that one load of a weight serves all of
/// them. Their sums fit in the registers.
template <class Arch>
inline constexpr int kDepthwiseTile = kInBlocks<Arch> ? 8 / Lanes<Arch>::kParts : 8;

/// Loads and stores the first n lanes of a vector.
template <class Arch>
struct FirstLanes {
  using V = Batch<float, Arch>;
  static constexpr int kCount = static_cast<int>(V::size);
  int64_t n;
  QUANTRAIN_INLINE V load(const float* from) const { return load_first<Arch>(from, n); }
  QUANTRAIN_INLINE void store(float* to, V v) const { store_first<Arch>(to, v, n); }
};

/// Calls f(c, AllLanes) for every whole vector of the channels [c, n), and f(c, FirstLanes) for the
/// rest.
template <class Arch, class F>
inline QUANTRAIN_INLINE void for_vectors(int64_t c, int64_t n, const F& f) {
  constexpr int64_t kEach = Batch<float, Arch>::size;
  for (; c + kEach <= n; c += kEach) f(c, AllLanes<Arch>());
  if (c < n) f(c, FirstLanes<Arch>{n - c});
}

/// With kInBlocks, calls f(c, Whole) for every 16 of n channels. Then calls f for every vector of
/// the other channels (see for_vectors()). The third argument of f is the number of such blocks or
/// vectors side by side: `most` as long as there are so many channels, then 1.
template <class Arch, int most, class F>
inline QUANTRAIN_INLINE void for_channels(int64_t n, const F& f) {
  using Block = std::conditional_t<kInBlocks<Arch>, Whole<Arch>, AllLanes<Arch>>;
  int64_t c = 0;
  const auto blocks = [&](auto wide) QUANTRAIN_INLINE {
    for (; c + wide * Block::kCount <= n; c += wide * Block::kCount) f(c, Block(), wide);
  };
  if constexpr (most > 1) blocks(std::integral_constant<int, most>());
  const auto one = std::integral_constant<int, 1>();
  if constexpr (kInBlocks<Arch>) blocks(one);
  for_vectors<Arch>(c, n, [&](int64_t from, auto at) QUANTRAIN_INLINE { f(from, at, one); });
}

/// Adds the products of all taps to the sums of n results, each of them in `wide` vectors of
/// channels. Each result reads x_step floats further on than the one before it.
template <class Arch, int n, int wide, class At, class Vector>
inline QUANTRAIN_INLINE_TILE void add_taps(const At& at,
                                           const AxisTaps& rows,
                                           const AxisTaps& columns,
                                           const float* x,
                                           int64_t x_step,
                                           const float* w,
                                           Vector (&sums)[wide][n]) {
  for (int64_t a = 0; a < rows.count; ++a) {
    const float* from = x + rows.from + a * rows.from_step + columns.from;
    const float* tap = w + rows.weight + a * rows.weight_step + columns.weight;
    for (int64_t b = 0; b < columns.count; ++b) {
      repeat<wide>([&](auto v) QUANTRAIN_INLINE {
        const Vector weight = at.load(tap + v * At::kCount);
        repeat<n>([&](auto i) QUANTRAIN_INLINE {
          const float* const read = from + i * x_step + v * At::kCount;
          sums[v][i] = fused<Arch>(at.load(read), weight, sums[v][i]);
        });
      });
      from += columns.from_step;
      tap += columns.weight_step;
    }
  }
}

/// Cuts n results into tiles, the largest first, and calls f(first result, size) for each tile. The
/// size is a compile-time constant.
template <int most, class F>
inline QUANTRAIN_INLINE void for_tiles(int64_t n, const F& f) {
  int64_t i = 0;
  const auto tiles = [&](auto size) QUANTRAIN_INLINE {
    if constexpr (size <= most) {
      for (; i + size <= n; i += size) f(i, size);
    }
  };
  tiles(std::integral_constant<int, 8>());
  tiles(std::integral_constant<int, 4>());
  tiles(std::integral_constant<int, 2>());
  tiles(std::integral_constant<int, 1>());
}

/// An axis of the results. Results whose positions are equal modulo `period` have the same taps,
/// except at the borders. From one of them to the next, the address that is read advances by
/// `read_step` floats.
struct ResultAxis {
  int64_t size, period, read_step;
};

/// Computes the lines [begin, end) in tiles. row_taps(i) and column_taps(j) return the taps of a
/// line and of a column. start(to, at) returns the value that a sum starts with, and
/// finish(sum, c, at) returns the result.
template <class Arch, class RowTaps, class ColumnTaps, class Start, class Finish>
inline QUANTRAIN_INLINE void depthwise_tiles(const ResultAxis& down,
                                             const ResultAxis& across,
                                             int64_t channels,
                                             int64_t begin,
                                             int64_t end,
                                             const float* x,
                                             int64_t image_floats,
                                             const float* w,
                                             float* y,
                                             const RowTaps& row_taps,
                                             const ColumnTaps& column_taps,
                                             const Start& start,
                                             const Finish& finish) {
  const auto tiles = [&](const AxisTaps& rows,
                         const AxisTaps& columns,
                         int64_t run,
                         const float* from,
                         int64_t reads,
                         float* to,
                         int64_t step) QUANTRAIN_INLINE {
    for_tiles<kDepthwiseTile<Arch>>(run, [&](int64_t i, auto size) QUANTRAIN_INLINE {
      // The sums of a single result do not wait for each other: half a tile is four vectors.
      constexpr int kWide = size == 1 ? kDepthwiseTile<Arch> / 2 : 1;
      for_channels<Arch, kWide>(channels, [&](int64_t c, auto at, auto wide) QUANTRAIN_INLINE {
        constexpr int64_t kCount = decltype(at)::kCount;
        float* const out = to + i * step + c;
        decltype(at.load(out)) sums[wide()][size()];
        repeat<wide>([&](auto v) QUANTRAIN_INLINE {
          repeat<size>([&](auto k) QUANTRAIN_INLINE {
            sums[v][k] = start(out + k * step + v * kCount, at);
          });
        });
        add_taps<Arch, size, wide>(at, rows, columns, from + i * reads + c, reads, w + c, sums);
        repeat<wide>([&](auto v) QUANTRAIN_INLINE {
          repeat<size>([&](auto k) QUANTRAIN_INLINE {
            at.store(out + k * step + v * kCount, finish(sums[v][k], c + v * kCount, at));
          });
        });
      });
    });
  };
  // Calls f(i, taps, run) for each run of results in [first, last) that have the same taps.
  const auto for_runs =
      [](const ResultAxis& axis, int64_t first, int64_t last, const auto& taps_of, const auto& f)
          QUANTRAIN_INLINE {
            for (int64_t r = first; r < last && r < first + axis.period; ++r) {
              for (int64_t i = r; i < last;) {
                const AxisTaps taps = taps_of(i);
                const int64_t left = (last - 1 - i) / axis.period + 1;
                const int64_t run = taps.run < left ? taps.run : left;
                f(i, taps, run);
                i += run * axis.period;
              }
            }
          };
  const int64_t line_floats = across.size * channels;
  for (int64_t line = begin; line < end;) {
    const int64_t first = line % down.size;
    const int64_t last = down.size - first < end - line ? down.size : first + end - line;
    const float* const from = x + line / down.size * image_floats;
    float* const to = y + (line - first) * line_floats;
    // In a narrow image, tiles go down the columns, because its lines are too short for tiles.
    if (across.size < 2 * kDepthwiseTile<Arch> && last - first > across.size) {
      for (int64_t j = 0; j < across.size; ++j) {
        const AxisTaps columns = column_taps(j);
        for_runs(down,
                 first,
                 last,
                 row_taps,
                 [&](int64_t i, const AxisTaps& rows, int64_t run) QUANTRAIN_INLINE {
                   float* const out = to + i * line_floats + j * channels;
                   tiles(rows, columns, run, from, down.read_step, out, down.period * line_floats);
                 });
      }
    } else {
      for (int64_t i = first; i < last; ++i) {
        const AxisTaps rows = row_taps(i);
        for_runs(across,
                 0,
                 across.size,
                 column_taps,
                 [&](int64_t j, const AxisTaps& columns, int64_t run) QUANTRAIN_INLINE {
                   float* const out = to + i * line_floats + j * channels;
                   tiles(rows, columns, run, from, across.read_step, out, across.period * channels);
                 });
      }
    }
    line += last - first;
  }
}

template <class Arch>
void depthwise_f32(
    const DepthwiseF32& p, int64_t begin, int64_t end, const float* x, const float* w, float* y) {
  if (try_depthwise_lines<Arch>(p, begin, end, x, w, y)) return;
  const PoolShape& s = p.pool;
  const int64_t line = s.w * s.c;
  depthwise_tiles<Arch>(
      {s.oh, 1, s.stride_h * line},
      {s.ow, 1, s.stride_w * s.c},
      s.c,
      begin,
      end,
      x,
      s.h * line,
      w,
      y,
      [&](int64_t i) QUANTRAIN_INLINE {
        const int64_t top = i * s.stride_h - s.pad_h;
        return window_taps(top, s.kh, s.dilation_h, s.stride_h, s.h, line, s.kw * s.c);
      },
      [&](int64_t j) QUANTRAIN_INLINE {
        const int64_t left = j * s.stride_w - s.pad_w;
        return window_taps(left, s.kw, s.dilation_w, s.stride_w, s.w, s.c, s.c);
      },
      [&](const float* to, auto at)
          QUANTRAIN_INLINE { return p.accumulate ? at.load(to) : decltype(at.load(to))(0.0f); },
      [&](auto sum, int64_t c, auto at) QUANTRAIN_INLINE {
        if (p.bias != nullptr) sum = sum + at.load(p.bias + c);
        using Vector = decltype(sum);
        return min(Vector(p.hi), max(Vector(p.lo), sum));
      });
}

template <class Arch>
void depthwise_backward_data_f32(const DepthwiseF32& p,
                                 int64_t begin,
                                 int64_t end,
                                 const float* grad_y,
                                 const float* w,
                                 float* grad_x) {
  const PoolShape& s = p.pool;
  const int64_t line = s.ow * s.c;
  depthwise_tiles<Arch>(
      {s.h, s.stride_h, line},
      {s.w, s.stride_w, s.c},
      s.c,
      begin,
      end,
      grad_y,
      s.oh * line,
      w,
      grad_x,
      [&](int64_t i) QUANTRAIN_INLINE {
        return gradient_taps(i + s.pad_h, s.kh, s.dilation_h, s.stride_h, s.oh, line, s.kw * s.c);
      },
      [&](int64_t j) QUANTRAIN_INLINE {
        return gradient_taps(j + s.pad_w, s.kw, s.dilation_w, s.stride_w, s.ow, s.c, s.c);
      },
      [](const float* to, auto at) QUANTRAIN_INLINE { return decltype(at.load(to))(0.0f); },
      [](auto sum, int64_t, auto) QUANTRAIN_INLINE { return sum; });
}

}  // namespace quantrain::kernels::simd
