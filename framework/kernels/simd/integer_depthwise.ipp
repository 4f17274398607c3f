#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/to_memory.hpp"

// Depthwise convolutions of bytes. The rows of one or two windows are interleaved, four at a time,
// into lines of quads, in which columns outside of the image lie too: element e of a line is the
// bytes of four rows at channel e % c of column e / c. Lanes run along those elements, and a dot
// product with four weights sums four rows.
namespace quantrain::kernels::simd {

/// to[4 e + k] = rows[k][e] for e < n.
template <class Arch, class I = Ints<Arch>>
inline void interleave(const uint8_t* const (&rows)[4], int64_t n, uint8_t* to) {
  if (n >= I::kBytes) {
    int64_t e = 0;
    for (; e + I::kBytes <= n; e += I::kBytes) I::interleave(rows, e, to + 4 * e);
    // The last ones end where the line does, and some are written twice.
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

/// Interleaves what lines of output see whose first window begins at row `top` of an image.
template <class Arch>
inline void interleave_windows(const DepthwiseU8S8& p, const uint8_t* image, int64_t top) {
  const PoolShape& s = p.pool;
  const DepthwiseLayout layout(s.kh, s.c);
  const int64_t length = s.w * s.c;
  uint8_t* to = p.scratch + layout.zero_line(s) + 4 * s.pad_w * s.c;
  for (int64_t quad = 0; quad < layout.quads; ++quad, to += layout.quad_line(s)) {
    const uint8_t* rows[4];
    QUANTRAIN_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int64_t row = top + 4 * quad + k;
      rows[k] = row >= 0 && row < s.h ? image + row * length : p.scratch;
    }
    interleave<Arch>(rows, length, to);
  }
}

/// What the tiles of one panel share: units of some whole pixels, one after the other, of one or
/// two lines.
struct DepthwisePanel {
  const uint8_t* x;  ///< the panel's first quad of the first unit
  int64_t x_step;    ///< bytes from unit to unit
  int64_t column, quad_line, quads, kw;
  const int8_t* w;
  int64_t tap;  ///< bytes of weights for a quad of a column
  const int32_t* start;
  // As ToMemory reads them.
  RequantizeU8 requantize;
  int32_t* acc;
  uint8_t* y;
  int64_t stride, outputs;
  int64_t line;  ///< elements from one line of output to the next
};

/// Tiles of U units x R lines, as many as fit. kShort: the window has 3 columns of one quad, whose
/// weights stay in registers.
template <class Arch, int U, int R, bool kShort, class ToMemory>
inline void depthwise_tiles(const DepthwisePanel& p,
                            const ToMemory& given,
                            int64_t units,
                            int64_t& unit) {
  using I = Ints<Arch>;
  using Int = typename I::Int;
  constexpr int kVector = 4 * I::kLanes;
  constexpr int kWeights = R * I::kSteps;  // vectors for a quad of a column
  constexpr bool kHolds = kShort && I::kManyRegisters;
  // Local copies stay in registers, because no store of bytes can change them.
  const ToMemory to_memory = given;
  const int64_t column = p.column;
  const int64_t x_step = p.x_step;
  const int64_t tap_bytes = p.tap;
  Int held[3][kWeights];
  if constexpr (kHolds) {
    repeat<3>([&](auto j) QUANTRAIN_INLINE {
      repeat<kWeights>([&](auto i) QUANTRAIN_INLINE {
        held[j][i] = I::load(p.w + j * tap_bytes + i * kVector);
      });
    });
  }
  const Int start = I::load(p.start);
  const uint8_t* x = p.x + unit * x_step;
  for (; unit + U <= units; unit += U, x += U * x_step) {
    Int sums[R][U][1];
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      repeat<U>([&](auto u) QUANTRAIN_INLINE { sums[r][u][0] = start; });
    });
    const auto tap = [&](const uint8_t* at, const auto& weights) QUANTRAIN_INLINE {
      repeat<U>([&](auto u) QUANTRAIN_INLINE {
        const Int quad = I::load(at + u * x_step);
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
        tap(x + j * column, [&](int i) QUANTRAIN_INLINE {
          if constexpr (kHolds) return held[j][i];
          return I::load(p.w + j * tap_bytes + i * kVector);
        });
      });
    } else {
      const int8_t* w = p.w;
      for (int64_t quad = 0; quad < p.quads; ++quad) {
        const uint8_t* at = x + quad * p.quad_line;
        for (int64_t j = 0; j < p.kw; ++j, at += column, w += tap_bytes) {
          tap(at, [&](int i) QUANTRAIN_INLINE { return I::load(w + i * kVector); });
        }
      }
    }
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      to_memory.template operator()<U>(unit * p.stride + r * p.line, sums[r]);
    });
  }
}

template <class Arch, int R, bool kShort, class ToMemory>
void depthwise_units(const DepthwisePanel& p, int64_t units) {
  const ToMemory to_memory(p, 0);
  int64_t unit = 0;
  depthwise_tiles<Arch, 4, R, kShort>(p, to_memory, units, unit);
  depthwise_tiles<Arch, 2, R, kShort>(p, to_memory, units, unit);
  depthwise_tiles<Arch, 1, R, kShort>(p, to_memory, units, unit);
}

/// One line of output, or two, panel by panel.
template <class Arch, int R, bool kShort, class ToMemory>
void depthwise_lines(const DepthwiseU8S8& p, int64_t first) {
  using I = Ints<Arch>;
  const PoolShape& s = p.pool;
  const DepthwiseLayout layout(s.kh, s.c);
  const int64_t line = s.ow * s.c;
  const int64_t run = s.stride_w == 1 ? layout.run : s.c;
  DepthwisePanel panel{};
  panel.x_step = 4 * (run == s.c ? s.stride_w * s.c : run);
  panel.column = 4 * s.c;
  panel.quad_line = layout.quad_line(s);
  panel.quads = layout.quads;
  panel.kw = s.kw;
  panel.stride = run;
  panel.line = line;
  panel.tap = layout.lines * I::kSteps * I::kLanes * 4;
  for (int64_t e = 0; e < run && e < line; e += I::kLanes) {
    panel.x = p.scratch + layout.zero_line(s) + 4 * e;
    panel.w = p.w + e / I::kLanes * layout.quads * s.kw * panel.tap;
    panel.start = p.start + e;
    panel.requantize = p.requantize.from(e);
    panel.acc = p.acc == nullptr ? nullptr : p.acc + first * line + e;
    panel.y = p.y == nullptr ? nullptr : p.y + first * line + e;
    // Whole vectors, or in each unit as many lanes as it has channels left.
    panel.outputs = run - e;
    int64_t units = line / run;
    depthwise_units<Arch, R, kShort, ToMemory>(panel, units);
    // What is left of the line is a part of a unit.
    const int64_t left = line - units * run - e;
    if (left <= 0) continue;
    panel.x += units * panel.x_step;
    panel.acc = panel.acc == nullptr ? nullptr : panel.acc + units * run;
    panel.y = panel.y == nullptr ? nullptr : panel.y + units * run;
    panel.outputs = left;
    depthwise_units<Arch, R, kShort, ToMemory>(panel, 1);
  }
}

template <class Arch, bool kShort, class ToMemory>
void depthwise_images(const DepthwiseU8S8& p) {
  const PoolShape& s = p.pool;
  const bool pairs = s.stride_h == 1 && DepthwiseLayout(s.kh, s.c).lines == 2;
  for (int64_t line = p.begin; line < p.end;) {
    const int64_t row = line % s.oh;
    interleave_windows<Arch>(p, p.x + line / s.oh * s.h * s.w * s.c, row * s.stride_h - s.pad_h);
    if (pairs && row + 1 < s.oh && line + 1 < p.end) {
      depthwise_lines<Arch, 2, kShort, ToMemory>(p, line);
      line += 2;
    } else {
      depthwise_lines<Arch, 1, kShort, ToMemory>(p, line);
      line += 1;
    }
  }
}

template <class Arch>
void depthwise_u8s8(const DepthwiseU8S8& p) {
  if (p.acc != nullptr) return depthwise_images<Arch, false, SumsToMemory<Arch, 1>>(p);
  if (p.requantize.round == nullptr) {
    return depthwise_images<Arch, false, CodesToMemory<Arch, 1, false>>(p);
  }
  if (p.pool.kw == 3 && p.pool.kh <= 3) {
    return depthwise_images<Arch, true, CodesToMemory<Arch, 1, true>>(p);
  }
  depthwise_images<Arch, false, CodesToMemory<Arch, 1, true>>(p);
}

}  // namespace quantrain::kernels::simd
