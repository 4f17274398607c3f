#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/panel_layout.ipp"
#include "framework/kernels/simd/to_memory.hpp"

// Products of bytes in tiles of rows x vectors of outputs. Sums stay in registers until they are
// complete. Before the store, they may be requantized by docs/quantization.md (8).
namespace quantrain::kernels::simd {

/// dot_u8s8 for panels of fewer bits (integer_few_bits.ipp).
template <class Arch>
void dot_few_bits(const DotU8S8& p);

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

/// The kinds of tiles. kShort is for a window of 3x3 on one channel, that is, 3 segments of one
/// quad each, which need no loop. kOctets is for panels of octets (PanelLayout).
enum class Tiles { kAny, kShort, kOctets };

/// sums[r][v] = start + the products of R rows and one panel of V vectors.
template <class Arch, int R, int V, Tiles kTiles>
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
  constexpr bool kTwice = R * V <= 4 && kTiles != Tiles::kShort;
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
  if constexpr (kTiles == Tiles::kShort) {
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

/// Adds one group of 8 consecutive k for R rows and a panel of V vectors. A vector of sums[.][i]
/// belongs to outputs 2 i and 2 i + 1 of the panel. If R is even, sums[r] holds their sums of row
/// 2 r, then those of row 2 r + 1. If R is 1, it holds two parts of each sum.
template <class Arch, int R, int V>
inline QUANTRAIN_INLINE void dot_octet(const uint8_t* const (&left)[R],
                                       int64_t j,
                                       const int8_t* w,
                                       typename Ints<Arch>::Int (&sums)[(R + 1) / 2][2 * V]) {
  using I = Ints<Arch>;
  typename I::Int x[(R + 1) / 2];
  if constexpr (R == 1) {
    x[0] = I::octet_twice(left[0] + j);
  } else {
    repeat<R / 2>([&](auto r)
                      QUANTRAIN_INLINE { x[r] = I::octets(left[2 * r] + j, left[2 * r + 1] + j); });
  }
  repeat<2 * V>([&](auto i) QUANTRAIN_INLINE {
    const typename I::Int right = I::load(w + i * I::kLanes * 4);
    repeat<(R + 1) / 2>([&](auto r) QUANTRAIN_INLINE {
      sums[r][i] =
          R == 1 ? I::dot(sums[r][i], x[r], right) : I::dot_octets(sums[r][i], x[r], right);
    });
  });
}

/// The same as dot_tile() for a panel of octets. R is 1 or even.
template <class Arch, int R, int V>
inline QUANTRAIN_INLINE void octet_tile(const DotU8S8& p,
                                        const uint8_t* const* x,
                                        const int8_t* w,
                                        const int32_t* start,
                                        Ahead ahead,
                                        typename Ints<Arch>::Int (&sums)[R][V]) {
  static_assert(R == 1 || R % 2 == 0);
  using I = Ints<Arch>;
  constexpr int kRowPairs = (R + 1) / 2;
  constexpr int64_t kOctet = V * I::kLanes * 8;
  constexpr bool kTwice = kRowPairs * V <= 2;  // as in dot_tile()
  typename I::Int acc[kRowPairs][2 * V];
  typename I::Int more[kRowPairs][2 * V];
  repeat<V>([&](auto v) QUANTRAIN_INLINE {
    const typename I::Int first = I::load(start + v * I::kLanes);
    repeat<kRowPairs>([&](auto r) QUANTRAIN_INLINE {
      acc[r][2 * v] = R == 1 ? I::zero() : I::low_pairs(first, first);
      acc[r][2 * v + 1] = R == 1 ? I::zero() : I::high_pairs(first, first);
      if constexpr (kTwice) more[r][2 * v] = more[r][2 * v + 1] = I::zero();
    });
  });
  const uint8_t* left[R];
  repeat<R>([&](auto r) QUANTRAIN_INLINE { left[r] = x[r]; });
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    int64_t j = segment * p.segment_step;
    const int64_t end = j + 4 * p.quads;
    if constexpr (kTwice) {
      for (; j + 16 <= end; j += 16, w += 2 * kOctet, ahead.at += 4 * ahead.step) {
        __builtin_prefetch(ahead.at);
        dot_octet<Arch, R, V>(left, j, w, acc);
        dot_octet<Arch, R, V>(left, j + 8, w + kOctet, more);
      }
    }
    for (; j < end; j += 8, w += kOctet, ahead.at += 2 * ahead.step) {
      __builtin_prefetch(ahead.at);
      dot_octet<Arch, R, V>(left, j, w, acc);
    }
  }
  repeat<kRowPairs>([&](auto r) QUANTRAIN_INLINE {
    repeat<V>([&](auto v) QUANTRAIN_INLINE {
      typename I::Int a = acc[r][2 * v];
      typename I::Int b = acc[r][2 * v + 1];
      if constexpr (kTwice) {
        a = I::add(a, more[r][2 * v]);
        b = I::add(b, more[r][2 * v + 1]);
      }
      if constexpr (R == 1) {
        sums[0][v] = I::add(I::load(start + v * I::kLanes), I::add_pairs(a, b));
      } else {
        sums[2 * r][v] = I::low_pairs(a, b);
        sums[2 * r + 1][v] = I::high_pairs(a, b);
      }
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

template <class Arch, int R, int V, Tiles kTiles, class ToMemory>
void dot_rows(
    const DotU8S8& p, const int8_t* w, int64_t output, const ToMemory& given, int64_t& row) {
  using I = Ints<Arch>;
  constexpr bool kCalls = std::is_same_v<ToMemory, EitherToMemory<Arch, V>>;
  // A local copy stays in registers, because no store of bytes can change it. This pays only for
  // short windows. Otherwise, the loop over k needs the registers.
  constexpr bool kCopies = kTiles == Tiles::kShort && !kCalls;
  std::conditional_t<kCopies, const ToMemory, const ToMemory&> to_memory = given;
  for (; row + R <= p.rows; row += R) {
    typename I::Int sums[R][V];
    const bool fetches = p.segments == 1 && p.quads <= kPrefetchedQuads && row + R < p.rows;
    const Ahead ahead{p.x[fetches ? row + R : row], fetches ? 4 * R : 0};
    if constexpr (kTiles == Tiles::kOctets) {
      octet_tile<Arch, R, V>(p, p.x + row, w, p.start + output, ahead, sums);
    } else {
      dot_tile<Arch, R, V, kTiles>(p, p.x + row, w, p.start + output, ahead, sums);
    }
    if constexpr (kCalls) {
      end_tile<Arch, R, V>(to_memory, row * p.stride, sums);
    } else {
      to_memory.template operator()<R>(row * p.stride, sums);
    }
  }
}

/// Stores one row of P panels, whose outputs all exist.
template <class Arch, int P, int V>
inline QUANTRAIN_INLINE void store_row(const DotU8S8& p,
                                       int64_t output,
                                       typename Ints<Arch>::Int (&sums)[P][1][V]) {
  repeat<P>([&](auto i) QUANTRAIN_INLINE {
    const int64_t panel = output + i * V * Ints<Arch>::kLanes;
    if (p.acc != nullptr) {
      SumsToMemory<Arch, V>(p, panel).whole(0, sums[i]);
    } else {
      CodesToMemory<Arch, V>(p, panel).whole(0, sums[i]);
    }
  });
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
  store_row<Arch, P, V>(p, output, sums);
}

/// The same for panels of octets.
template <class Arch, int P, int V>
void octet_row(const DotU8S8& p, const int8_t* w, int64_t output) {
  using I = Ints<Arch>;
  typename I::Int parts[P][1][2 * V];  // two parts of each sum, as in dot_octet()
  repeat<P * 2 * V>([&](auto i)
                        QUANTRAIN_INLINE { parts[i / (2 * V)][0][i % (2 * V)] = I::zero(); });
  const uint8_t* const left[1] = {p.x[0]};
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    const int64_t end = segment * p.segment_step + 4 * p.quads;
    for (int64_t j = segment * p.segment_step; j < end; j += 8, w += V * I::kLanes * 8) {
      repeat<P>([&](auto i) QUANTRAIN_INLINE {
        dot_octet<Arch, 1, V>(left, j, w + i * p.panel, parts[i]);
      });
    }
  }
  typename I::Int sums[P][1][V];
  repeat<P * V>([&](auto i) QUANTRAIN_INLINE {
    const auto& panel = parts[i / V][0];
    sums[i / V][0][i % V] = I::add(I::load(p.start + output + i * I::kLanes),
                                   I::add_pairs(panel[2 * (i % V)], panel[2 * (i % V) + 1]));
  });
  store_row<Arch, P, V>(p, output, sums);
}

template <class Arch, int V, Tiles kTiles>
void dot_panels(const DotU8S8& p) {
  using I = Ints<Arch>;
  constexpr int64_t kWidth = V * I::kLanes;
  const int8_t* w = p.w;
  int64_t output = 0;
  if constexpr (I::kManyRegisters && V == 4 && kTiles != Tiles::kShort) {
    const auto row = [&](auto panels) QUANTRAIN_INLINE {
      for (; output + panels * kWidth <= p.outputs;
           output += panels * kWidth, w += panels * p.panel) {
        if constexpr (kTiles == Tiles::kOctets) {
          octet_row<Arch, panels, V>(p, w, output);
        } else {
          dot_row<Arch, panels, V>(p, w, output);
        }
      }
    };
    if (p.rows == 1) {
      // The parts of the sums of four panels of octets would not fit in the registers.
      if constexpr (kTiles == Tiles::kAny) row(std::integral_constant<int, 4>());
      row(std::integral_constant<int, 2>());
    }
  }
  for (; output < p.outputs; output += kWidth, w += p.panel) {
    const EitherToMemory<Arch, V> to_memory(p, output);
    int64_t row = 0;
    const auto rows = [&](auto r, const auto& given) QUANTRAIN_INLINE {
      if (row + r <= p.rows) dot_rows<Arch, r, V, kTiles>(p, w, output, given, row);
    };
    // The tallest tiles do most of the work. They store sums and codes without a call, unless there
    // are few registers and the window is not short. All other tiles call.
    constexpr std::integral_constant<int, I::rows(V)> tallest;
    if constexpr (kTiles != Tiles::kShort && !I::kManyRegisters) {
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
  if constexpr (Ints<Arch>::kOctets) {
    if (p.layout.octets) return dot_panels<Arch, V, Tiles::kOctets>(p);
  }
  if constexpr (V <= Ints<Arch>::kShortPanel) {
    if (p.segments == 3 && p.quads == 1) return dot_panels<Arch, V, Tiles::kShort>(p);
  }
  dot_panels<Arch, V, Tiles::kAny>(p);
}

template <class Arch>
void dot_u8s8(const DotU8S8& p) {
  using I = Ints<Arch>;
  if constexpr (Ints<typename I::Few>::kFewPanel > 0) {
    if (p.layout.few != FewBits::kNone) return dot_few_bits<typename I::Few>(p);
  }
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
