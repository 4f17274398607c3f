#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/to_memory.hpp"

// Depthwise convolutions of bytes. The rows of one or two windows are interleaved, four at a time,
// into lines of quads (DepthwiseLayout in params.hpp). A line of quads also has the columns outside
// the image. For a block of b channels, element e of a line holds the bytes of four rows, at
// channel e % b of column e / b. Lanes run along these elements, and a dot product with four
// weights sums four rows.
namespace quantrain::kernels::simd {

/// to[4 e + k] = rows[k][e] for e < n.
template <class Arch, class I = Ints<Arch>>
inline void interleave(const uint8_t* const (&rows)[4], int64_t n, uint8_t* to) {
  if (n >= I::kBytes) {
    int64_t e = 0;
    for (; e + I::kBytes <= n; e += I::kBytes) I::interleave(rows, e, to + 4 * e);
    // The last vector ends where the line ends, so some elements are written twice.
    if (e < n) I::interleave(rows, n - I::kBytes, to + 4 * (n - I::kBytes));
  } else if constexpr (I::kBytes > 16) {
    interleave<Arch, typename I::Narrow>(rows, n, to);
  } else {
    for (int64_t e = 0; e < n; ++e) {
      QUANTRAIN_UNROLL
      for (int k = 0; k < 4; ++k) to[4 * e + k] = rows[k][e];
    }
  }
}

/// Interleaves the rows that the windows of a group of output lines cover, for a block of channels.
/// The group's first window begins at row `top` of the image.
template <class Arch>
inline void interleave_windows(
    const DepthwiseU8S8& p, const uint8_t* image, int64_t top, int64_t channel, uint8_t* to) {
  const PoolShape& s = p.pool;
  const DepthwiseLayout layout(s.kh, s.c);
  // Interleaves whole lines if the block has all channels, else one pixel at a time.
  const bool is_whole = layout.block == s.c;
  const int64_t count = is_whole ? 1 : s.w;
  const int64_t left = s.c - channel;
  const int64_t length = is_whole ? s.w * s.c : left < layout.block ? left : layout.block;
  to += 4 * s.pad_w * layout.block;
  for (int64_t quad = 0; quad < layout.quads; ++quad, to += layout.quad_line(s)) {
    const uint8_t* rows[4];
    QUANTRAIN_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int64_t row = top + (4 * quad + k) * s.dilation_h;
      rows[k] = (row >= 0 && row < s.h ? image + row * s.w * s.c : p.scratch) + channel;
    }
    for (int64_t i = 0; i < count; ++i) {
      interleave<Arch>(rows, length, to + i * 4 * layout.block);
      QUANTRAIN_UNROLL
      for (int k = 0; k < 4; ++k) rows[k] += s.c;
    }
  }
}

/// The units along one axis (see DepthwisePanel). Neighbouring units are x_step bytes apart in x,
/// and y_step elements apart in y.
struct DepthwiseAxis {
  int64_t count, x_step, y_step;

  /// Number of tiles of 4 units, rounded up.
  QUANTRAIN_INLINE int64_t tiles() const { return (count + 3) / 4; }
};

/// What all tiles of a panel share. A unit is one or more whole pixels of each line of a group.
struct DepthwisePanel {
  DepthwiseAxis inner;  ///< tiles lie along this axis
  DepthwiseAxis outer;
  const uint8_t* x;  ///< the panel's first quad in the first unit
  int64_t column, quad_line, quads, kw;
  const int8_t* w;
  int64_t tap;  ///< bytes of weights for one quad in one column of the window
  const int32_t* start;
  int64_t line;  ///< elements from one output line of a group to the next
  // Read by ToMemory.
  RequantizeU8 requantize;
  int32_t* acc;
  uint8_t* y;
  int64_t stride, outputs;
};

/// Computes the tiles of a panel. A tile has up to 4 units of R lines. kShort means that the window
/// has 3 columns of one quad. If there are enough registers, its weights stay in registers.
template <class Arch, int R, bool kShort, class ToMemory>
void depthwise_panel(const DepthwisePanel& p) {
  using I = Ints<Arch>;
  using Int = typename I::Int;
  constexpr int kVector = 4 * I::kLanes;
  constexpr int kWeights = R * I::kSteps;  // for one quad in one column of the window
  constexpr bool kHolds = kShort && I::kManyRegisters;
  // Local copies stay in registers, because no store of bytes can change them.
  const ToMemory to_memory(p, 0);
  const DepthwiseAxis inner = p.inner;
  const int64_t column = p.column;
  const int64_t line = p.line;
  const int64_t tap_bytes = p.tap;
  const Int start = I::load(p.start);
  Int held[3][kWeights];
  if constexpr (kHolds) {
    repeat<3>([&](auto j) QUANTRAIN_INLINE {
      repeat<kWeights>([&](auto i) QUANTRAIN_INLINE {
        held[j][i] = I::load(p.w + j * tap_bytes + i * kVector);
      });
    });
  }
  for (int64_t i = 0; i < p.outer.count; ++i) {
    const uint8_t* x = p.x + i * p.outer.x_step;
    int64_t at = i * p.outer.y_step;
    int64_t left = inner.count;
    const auto tiles = [&](auto u_constant) QUANTRAIN_INLINE {
      constexpr int U = u_constant;
      for (; left >= U; left -= U, x += U * inner.x_step, at += U * inner.y_step) {
        Int sums[R][U][1];
        repeat<R>([&](auto r) QUANTRAIN_INLINE {
          repeat<U>([&](auto u) QUANTRAIN_INLINE { sums[r][u][0] = start; });
        });
        const auto tap = [&](const uint8_t* from, const auto& weights) QUANTRAIN_INLINE {
          repeat<U>([&](auto u) QUANTRAIN_INLINE {
            const Int quad = I::load(from + u * inner.x_step);
            repeat<I::kSteps>([&](auto step) QUANTRAIN_INLINE {
              const Int part = I::part(quad, step);
              repeat<R>([&](auto r) QUANTRAIN_INLINE {
                sums[r][u][0] = I::dot(sums[r][u][0], part, weights(r * I::kSteps + step));
              });
            });
          });
        };
        if constexpr (kShort) {
          repeat<3>([&](auto j) QUANTRAIN_INLINE {
            tap(x + j * column, [&](int k) QUANTRAIN_INLINE {
              if constexpr (kHolds) return held[j][k];
              return I::load(p.w + j * tap_bytes + k * kVector);
            });
          });
        } else {
          const int8_t* w = p.w;
          for (int64_t quad = 0; quad < p.quads; ++quad) {
            const uint8_t* from = x + quad * p.quad_line;
            for (int64_t j = 0; j < p.kw; ++j, from += column, w += tap_bytes) {
              tap(from, [&](int k) QUANTRAIN_INLINE { return I::load(w + k * kVector); });
            }
          }
        }
        repeat<R>([&](auto r) QUANTRAIN_INLINE {
          to_memory.template operator()<U>(at + r * line, sums[r]);
        });
      }
    };
    tiles(std::integral_constant<int, 4>());
    tiles(std::integral_constant<int, 2>());
    tiles(std::integral_constant<int, 1>());
  }
}

/// depthwise_panel for groups of one line and of two lines.
struct DepthwisePanels {
  void (*one)(const DepthwisePanel&);
  void (*two)(const DepthwisePanel&);
};

/// Computes the sums of a panel, up to 16 units at a time, and then requantizes them, for the rare
/// case that RequantizeU8::usual is not set. sums_of is a depthwise_panel that can store sums.
template <class Arch>
QUANTRAIN_ONE_COPY void requantize_units(const DepthwiseU8S8& layer,
                                         void (*sums_of)(const DepthwisePanel&),
                                         int64_t lines,
                                         const DepthwisePanel& panel) {
  constexpr int64_t kLanes = Ints<Arch>::kLanes;
  constexpr int64_t kUnits = 16;
  constexpr int64_t kPeriod = 16;  // of requantize_s32_u8, so multipliers are repeated
  const int64_t count = panel.outputs < kLanes ? panel.outputs : kLanes;
  int32_t m0[kPeriod], shift[kPeriod];
  for (int64_t i = 0; i < kPeriod; ++i) {
    m0[i] = panel.requantize.m0[i % kLanes];
    shift[i] = panel.requantize.shift[i % kLanes];
  }
  RequantizeU8 requantize = panel.requantize;
  requantize.m0 = m0;
  requantize.shift = shift;
  int32_t sums[2 * kUnits * kLanes];
  uint8_t codes[kUnits * kLanes];
  DepthwisePanel part = panel;
  part.outer = {1, 0, 0};
  part.acc = sums;
  part.stride = part.outputs = kLanes;
  part.line = kUnits * kLanes;
  for (int64_t i = 0; i < panel.outer.count; ++i) {
    for (int64_t j = 0; j < panel.inner.count; j += kUnits) {
      const int64_t left = panel.inner.count - j;
      const int64_t units = left < kUnits ? left : kUnits;
      part.inner = {units, panel.inner.x_step, kLanes};
      part.x = panel.x + i * panel.outer.x_step + j * panel.inner.x_step;
      sums_of(part);
      uint8_t* to = panel.y + i * panel.outer.y_step + j * panel.inner.y_step;
      for (int64_t line = 0; line < lines; ++line, to += panel.line) {
        const int32_t* const from = sums + line * part.line;
        layer.requantize_sums(units * kLanes, kPeriod, from, requantize, codes, nullptr, 0, 0);
        for (int64_t u = 0; u < units; ++u) {
          __builtin_memcpy(
              to + u * panel.inner.y_step, codes + u * kLanes, static_cast<size_t>(count));
        }
      }
    }
  }
}

/// The distance between the output lines of a group.
inline QUANTRAIN_INLINE int64_t line_step(const PoolShape& s) {
  return s.stride_h == 1 ? s.dilation_h : 1;
}

/// Computes `groups` groups of one or two output lines, beginning at line `first`, for a block of
/// channels, panel by panel.
template <class Arch>
void depthwise_groups(const DepthwiseU8S8& p,
                      const DepthwisePanels& panels,
                      int64_t lines,
                      int64_t first,
                      int64_t groups,
                      int64_t channel) {
  using I = Ints<Arch>;
  const PoolShape& s = p.pool;
  const DepthwiseLayout layout(s.kh, s.c);
  const int64_t line = s.ow * s.c;
  const int64_t run = s.stride_w == 1 ? layout.run : s.c;
  const int64_t pixel = s.stride_w * layout.block;
  const int64_t step = line_step(s) * line;
  const DepthwiseAxis down{groups, layout.group_bytes(s), lines * step};
  const DepthwiseAxis along{line / run, 4 * (run == s.c ? pixel : run), run};
  // Tiles lie along the axis that needs fewer of them.
  const bool is_down = down.tiles() * along.count < along.tiles() * down.count;
  DepthwisePanel panel{};
  panel.column = 4 * layout.block * s.dilation_w;
  panel.quad_line = layout.quad_line(s);
  panel.quads = layout.quads;
  panel.kw = s.kw;
  panel.line = step;
  panel.tap = layout.lines * I::kSteps * I::kLanes * 4;
  // The unit's elements in this block end at `end`. A block of all channels covers the whole unit.
  const int64_t block_end = channel + layout.block < run ? channel + layout.block : run;
  const int64_t end = layout.block == s.c ? run : block_end;
  for (int64_t e = channel; e < end && e < line; e += I::kLanes) {
    panel.w = p.w + e / I::kLanes * layout.quads * s.kw * panel.tap;
    panel.start = p.start + e;
    panel.requantize = p.requantize.from(e);
    const auto units =
        [&](const DepthwiseAxis& inner, const DepthwiseAxis& outer, int64_t unit) QUANTRAIN_INLINE {
          panel.inner = inner;
          panel.outer = outer;
          panel.stride = inner.y_step;
          panel.x = p.scratch + layout.zero_line(s) + 4 * (e - channel) + unit * along.x_step;
          const int64_t to = first * line + unit * run + e;
          panel.acc = p.acc == nullptr ? nullptr : p.acc + to;
          panel.y = p.y == nullptr ? nullptr : p.y + to;
          const auto compute = lines == 2 ? panels.two : panels.one;
          if (panel.acc == nullptr && !panel.requantize.usual) {
            return requantize_units<Arch>(p, compute, lines, panel);
          }
          compute(panel);
        };
    panel.outputs = run - e;
    is_down ? units(down, along, 0) : units(along, down, 0);
    // The last unit of a line may have fewer pixels.
    panel.outputs = line - along.count * run - e;
    if (panel.outputs > 0) units(down, {1, 0, 0}, along.count);
  }
}

/// Computes the output lines [p.begin, p.end), image by image. Each step computes as many groups as
/// fit in the scratch memory.
template <class Arch>
void depthwise_images(const DepthwiseU8S8& p, const DepthwisePanels& panels) {
  const PoolShape& s = p.pool;
  const DepthwiseLayout layout(s.kh, s.c);
  const int64_t most = layout.groups(s);
  const int64_t step = line_step(s);
  for (int64_t begin = p.begin; begin < p.end;) {
    const int64_t image_end = (begin / s.oh + 1) * s.oh;
    const int64_t end = image_end < p.end ? image_end : p.end;
    const uint8_t* const image = p.x + begin / s.oh * s.h * s.w * s.c;
    for (int64_t first = begin; first < begin + step && first < end; ++first) {
      for (int64_t line = first; line < end;) {
        const int64_t left = (end - line + step - 1) / step;
        const int64_t lines = left < layout.group(s) ? 1 : layout.group(s);
        const int64_t groups = left / lines < most ? left / lines : most;
        for (int64_t channel = 0; channel < s.c; channel += layout.block) {
          for (int64_t group = 0; group < groups; ++group) {
            const int64_t row = line % s.oh + group * lines * step;
            uint8_t* const to = p.scratch + layout.zero_line(s) + group * layout.group_bytes(s);
            interleave_windows<Arch>(p, image, row * s.stride_h - s.pad_h, channel, to);
          }
          depthwise_groups<Arch>(p, panels, lines, line, groups, channel);
        }
        line += groups * lines * step;
      }
    }
    begin = end;
  }
}

template <class Arch, bool kShort, class ToMemory>
constexpr DepthwisePanels kDepthwisePanels = {depthwise_panel<Arch, 1, kShort, ToMemory>,
                                              depthwise_panel<Arch, 2, kShort, ToMemory>};

template <class Arch>
void depthwise_u8s8(const DepthwiseU8S8& p) {
  const bool is_short = p.pool.kw == 3 && p.pool.kh <= 3;
  const bool is_sums = p.acc != nullptr || !p.requantize.usual;
  depthwise_images<Arch>(p,
                         is_short && !is_sums
                             ? kDepthwisePanels<Arch, true, CodesToMemory<Arch, 1>>
                             : kDepthwisePanels<Arch, false, EitherToMemory<Arch, 1>>);
}

}  // namespace quantrain::kernels::simd
