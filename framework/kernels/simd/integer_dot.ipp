#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/to_memory.hpp"

// Products of bytes in tiles of rows x vectors of outputs. Sums stay in registers until they are
// complete. Before the store, they may be requantized by docs/quantization.md (8).
namespace quantrain::kernels::simd {

template <class Arch>
void panel_layout_u8s8(int64_t outputs, PanelLayout* layout) {
  using I = Ints<Arch>;
  const int64_t vectors = (outputs + I::kLanes - 1) / I::kLanes;
  int64_t best = vectors < I::kMaxPanel ? vectors : I::kMaxPanel;
  // Chooses the width with the least padding, and the largest of equally good widths. A panel has
  // at least two vectors, unless the outputs fill only one, because a panel of one vector needs
  // more loads than products.
  const auto padded = [&](int64_t v) { return (vectors + v - 1) / v * v; };
  for (int64_t v = best - 1; v >= 2; --v) {
    if (padded(v) < padded(best)) best = v;
  }
  *layout = {.width = (best < 1 ? 1 : best) * I::kLanes,
             .pairs = I::kPairs,
             .offset = I::kOffset,
             .planes = I::kPlanes};
}

/// What a tile prefetches while it sums: the rows of the next tile, on the assumption that these
/// rows are contiguous. Processors do not predict which row is read after a short row. A step of 0
/// prefetches nothing new.
struct Ahead {
  const uint8_t* at;
  int64_t step;
};

/// Adds the products of kBytes consecutive k, for instruction sets that multiply by lanes. Each
/// step takes kStepBytes of them. The products of even steps are added to `even`, those of odd
/// steps to `odd`. Both may be the same array.
template <class Arch, int kBytes, int R, int V>
inline QUANTRAIN_INLINE void dot_lanes(const uint8_t* const (&left)[R],
                                       int64_t j,
                                       const int8_t* w,
                                       typename Ints<Arch>::Int (&even)[R][V],
                                       typename Ints<Arch>::Int (&odd)[R][V]) {
  using I = Ints<Arch>;
  typename I::Left x[R];
  repeat<R>([&](auto r) QUANTRAIN_INLINE { x[r] = I::template load_left<kBytes>(left[r] + j); });
  repeat<kBytes / I::kStepBytes>([&](auto step) QUANTRAIN_INLINE {
    auto& sums = step % 2 == 0 ? even : odd;
    repeat<V>([&](auto v) QUANTRAIN_INLINE {
      const typename I::Right right = I::load_right(w + (step * V + v) * sizeof(typename I::Right));
      repeat<R>([&](auto r) QUANTRAIN_INLINE {
        sums[r][v] = I::template dot_lane<step>(sums[r][v], x[r], right);
      });
    });
  });
}

/// Adds one group of 4 consecutive k: sums[r][v] += x[r] * w, for R rows and a panel of V vectors.
template <class Arch, int R, int V>
inline QUANTRAIN_INLINE void dot_quad(const uint8_t* const (&left)[R],
                                      int64_t j,
                                      const int8_t* w,
                                      typename Ints<Arch>::Int (&sums)[R][V]) {
  using I = Ints<Arch>;
  if constexpr (I::kByLane) return dot_lanes<Arch, 4, R, V>(left, j, w, sums, sums);
  repeat<I::kSteps>([&](auto step) QUANTRAIN_INLINE {
    typename I::Int right[V];
    repeat<V>([&](auto v)
                  QUANTRAIN_INLINE { right[v] = I::load(w + (step * V + v) * I::kLanes * 4); });
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      int32_t quad;
      __builtin_memcpy(&quad, left[r] + j, 4);
      const typename I::Int x = I::part(I::set1(quad), step);
      repeat<V>([&](auto v) QUANTRAIN_INLINE {
        sums[r][v] = I::dot(sums[r][v], x, right[v]);
        // Otherwise, the compiler would add up the products of both steps first and run out of
        // registers.
        if constexpr (I::kSteps > 1) I::settle(sums[r][v]);
      });
    });
  });
}

/// sums[r][v] = start + the products of R rows and one panel of V vectors. kShort means a window of
/// 3x3 on one channel, that is, 3 segments of one quad each. They need no loop.
template <class Arch, int R, int V, bool kShort>
inline QUANTRAIN_INLINE void dot_tile(const DotU8S8& p,
                                      const uint8_t* const* x,
                                      const int8_t* w,
                                      const int32_t* start,
                                      Ahead ahead,
                                      typename Ints<Arch>::Int (&sums)[R][V]) {
  using I = Ints<Arch>;
  constexpr int64_t kQuad = V * I::kLanes * 4 * I::kSteps;
  // The additions to one sum form a chain: each waits a few cycles for the one before it. So if a
  // tile has few sums, every second step goes to a second chain.
  constexpr bool kTwice = R * V <= 4 && !kShort;
  // Local arrays, because the compiler would keep the caller's arrays in memory.
  typename I::Int acc[R][V];
  typename I::Int more[R][V];
  repeat<V>([&](auto v) QUANTRAIN_INLINE {
    const typename I::Int first = I::load(start + v * I::kLanes);
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      acc[r][v] = first;
      if constexpr (kTwice) more[r][v] = I::zero();
    });
  });
  const uint8_t* left[R];
  repeat<R>([&](auto r) QUANTRAIN_INLINE { left[r] = x[r]; });
  if constexpr (kShort) {
    repeat<3>([&](auto segment) QUANTRAIN_INLINE {
      dot_quad<Arch, R, V>(left, segment * p.segment_step, w + segment * kQuad, acc);
    });
  } else {
    for (int64_t segment = 0; segment < p.segments; ++segment) {
      int64_t j = segment * p.segment_step;
      const int64_t end = j + 4 * p.quads;
      if constexpr (I::kByLane) {
        constexpr int kBytes = I::kLeftBytes;
        constexpr int kQuads = kBytes / 4;
        for (; j + kBytes <= end; j += kBytes, w += kQuads * kQuad) {
          __builtin_prefetch(ahead.at);
          ahead.at += kQuads * ahead.step;
          dot_lanes<Arch, kBytes, R, V>(left, j, w, acc, kTwice ? more : acc);
        }
      } else if constexpr (kTwice) {
        for (; j + 8 <= end; j += 8, w += 2 * kQuad, ahead.at += 2 * ahead.step) {
          __builtin_prefetch(ahead.at);
          dot_quad<Arch, R, V>(left, j, w, acc);
          dot_quad<Arch, R, V>(left, j + 4, w + kQuad, more);
        }
      }
      for (; j < end; j += 4, w += kQuad, ahead.at += ahead.step) {
        __builtin_prefetch(ahead.at);
        dot_quad<Arch, R, V>(left, j, w, acc);
      }
    }
  }
  repeat<R>([&](auto r) QUANTRAIN_INLINE {
    repeat<V>([&](auto v) QUANTRAIN_INLINE {
      sums[r][v] = acc[r][v];
      if constexpr (kTwice) sums[r][v] = I::add(acc[r][v], more[r][v]);
      I::settle(sums[r][v]);
    });
  });
}

inline constexpr int64_t kPrefetchedQuads = 256;

/// This is a separate function, so that its constants take no registers from the sums.
template <class Arch, int R, int V>
__attribute__((noinline)) void end_tile(const EitherToMemory<Arch, V>& to_memory,
                                        int64_t at,
                                        typename Ints<Arch>::Int (&sums)[R][V]) {
  to_memory.template operator()<R>(at, sums);
}

template <class Arch, int R, int V, bool kShort, class ToMemory>
void dot_rows(
    const DotU8S8& p, const int8_t* w, int64_t output, const ToMemory& given, int64_t& row) {
  using I = Ints<Arch>;
  constexpr bool kCalls = std::is_same_v<ToMemory, EitherToMemory<Arch, V>>;
  // A local copy stays in registers, because no store of bytes can change it. This pays only for
  // short windows. Otherwise, the loop over k needs the registers.
  std::conditional_t<kShort && !kCalls, const ToMemory, const ToMemory&> to_memory = given;
  for (; row + R <= p.rows; row += R) {
    typename I::Int sums[R][V];
    const bool fetches = p.segments == 1 && p.quads <= kPrefetchedQuads && row + R < p.rows;
    const Ahead ahead{p.x[fetches ? row + R : row], fetches ? 4 * R : 0};
    dot_tile<Arch, R, V, kShort>(p, p.x + row, w, p.start + output, ahead, sums);
    if constexpr (kCalls) {
      end_tile<Arch, R, V>(to_memory, row * p.stride, sums);
    } else {
      to_memory.template operator()<R>(row * p.stride, sums);
    }
  }
}

/// Multiplies one row by P panels at once. All outputs of the panels must exist. With a loop for
/// each panel, the processor would mispredict the end of each loop, and read no weights meanwhile.
template <class Arch, int P, int V>
void dot_row(const DotU8S8& p, const int8_t* w, int64_t output) {
  using I = Ints<Arch>;
  typename I::Int sums[P][1][V];
  repeat<P>([&](auto i) QUANTRAIN_INLINE {
    repeat<V>([&](auto v) QUANTRAIN_INLINE {
      sums[i][0][v] = I::load(p.start + output + (i * V + v) * I::kLanes);
    });
  });
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    constexpr int64_t kQuad = V * I::kLanes * 4 * I::kSteps;
    const uint8_t* const left[1] = {p.x[0]};
    int64_t j = segment * p.segment_step;
    const int64_t end = j + 4 * p.quads;
    if constexpr (I::kByLane) {
      constexpr int kBytes = I::kLeftBytes;
      for (; j + kBytes <= end; j += kBytes, w += kBytes / 4 * kQuad) {
        repeat<P>([&](auto i) QUANTRAIN_INLINE {
          dot_lanes<Arch, kBytes, 1, V>(left, j, w + i * p.panel, sums[i], sums[i]);
        });
      }
    }
    for (; j < end; j += 4, w += kQuad) {
      repeat<P>([&](auto i)
                    QUANTRAIN_INLINE { dot_quad<Arch, 1, V>(left, j, w + i * p.panel, sums[i]); });
    }
  }
  repeat<P>([&](auto i) QUANTRAIN_INLINE {
    const int64_t panel = output + i * V * I::kLanes;
    if (p.acc != nullptr) {
      SumsToMemory<Arch, V>(p, panel).whole(0, sums[i]);
    } else {
      CodesToMemory<Arch, V>(p, panel).whole(0, sums[i]);
    }
  });
}

template <class Arch, int V, bool kShort>
void dot_panels(const DotU8S8& p) {
  using I = Ints<Arch>;
  constexpr int64_t kWidth = V * I::kLanes;
  const int8_t* w = p.w;
  int64_t output = 0;
  if constexpr (I::kManyRegisters && V == 4 && !kShort) {
    const auto row = [&](auto panels) QUANTRAIN_INLINE {
      for (; output + panels * kWidth <= p.outputs;
           output += panels * kWidth, w += panels * p.panel)
        dot_row<Arch, panels, V>(p, w, output);
    };
    if (p.rows == 1) {
      row(std::integral_constant<int, 4>());
      row(std::integral_constant<int, 2>());
    }
  }
  for (; output < p.outputs; output += kWidth, w += p.panel) {
    const EitherToMemory<Arch, V> to_memory(p, output);
    int64_t row = 0;
    const auto rows = [&](auto r, const auto& given) QUANTRAIN_INLINE {
      if (row + r <= p.rows) dot_rows<Arch, r, V, kShort>(p, w, output, given, row);
    };
    // The tallest tiles do most of the work. They store sums and codes without a call, unless there
    // are few registers and the window is not short. All other tiles call.
    constexpr std::integral_constant<int, I::rows(V)> tallest;
    if constexpr (!kShort && !I::kManyRegisters) {
      rows(tallest, to_memory);
    } else if (p.acc != nullptr) {
      rows(tallest, to_memory.sums());
    } else {
      rows(tallest, to_memory.codes());
    }
    if constexpr (tallest > 4) rows(std::integral_constant<int, 4>(), to_memory);
    rows(std::integral_constant<int, 2>(), to_memory);
    rows(std::integral_constant<int, 1>(), to_memory);
  }
}

template <class Arch, int V>
void dot_width(const DotU8S8& p) {
  if constexpr (V <= Ints<Arch>::kShortPanel) {
    if (p.segments == 3 && p.quads == 1) return dot_panels<Arch, V, true>(p);
  }
  dot_panels<Arch, V, false>(p);
}

template <class Arch>
void dot_u8s8(const DotU8S8& p) {
  using I = Ints<Arch>;
  switch (p.layout.width / I::kLanes) {
    case 1: return dot_width<Arch, 1>(p);
    case 2: return dot_width<Arch, 2>(p);
    case 3:
      if constexpr (I::kMaxPanel >= 3) dot_width<Arch, 3>(p);
      return;
    case 4:
      if constexpr (I::kMaxPanel >= 4) dot_width<Arch, 4>(p);
      return;
  }
}

}  // namespace quantrain::kernels::simd
