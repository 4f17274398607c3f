#pragma once

#include "framework/kernels/simd/integer_dot.ipp"

// Products of bytes with weights of fewer bits, and products of bits. See FewBits in params.hpp for
// the forms of their panels. Tiles and stores are those of integer_dot.ipp.
namespace quantrain::kernels::simd {

/// The rows of a tile of half a panel of fields.
inline constexpr int kManyRows = 12;

/// How many groups of 4 bytes of x a step multiplies.
template <FewBits kFew>
inline constexpr int kStepQuads = kFew == FewBits::kBits       ? 1
                                  : kFew == FewBits::kQuarters ? 4
                                                               : 2;

/// The weights of group `quad` of a step, for vector v of a panel of P vectors.
template <class Arch, FewBits kFew, int P, int quad>
inline QUANTRAIN_INLINE typename Ints<Arch>::Int few_weights(const int8_t* w, int v) {
  using I = Ints<Arch>;
  if constexpr (kFew == FewBits::kHalves || kFew == FewBits::kQuarters) {
    constexpr int kBits = 8 / kStepQuads<kFew>;
    const typename I::Int bytes = I::load(w + v * I::kLanes * 4);
    return I::bit_and(I::template srl16<quad * kBits>(bytes),
                      I::set1(((1 << kBits) - 1) * 0x01010101));
  } else {
    return I::load(w + (quad * P + v) * I::kLanes * 4);
  }
}

/// Adds one step of V vectors of a panel of P: sums[r][v] += x[r] * w. For fields in few rows,
/// every second group goes to `more`, so that additions need not wait for each other.
template <class Arch, FewBits kFew, int P, int R, int V>
inline QUANTRAIN_INLINE void few_step(const uint8_t* const (&left)[R],
                                      int64_t j,
                                      const int8_t* w,
                                      typename Ints<Arch>::Int (&sums)[R][V],
                                      typename Ints<Arch>::Int (&more)[R][V]) {
  using I = Ints<Arch>;
  const auto x_of = [&](int r, int quad) QUANTRAIN_INLINE {
    int32_t bytes;
    __builtin_memcpy(&bytes, left[r] + j + 4 * quad, 4);
    return I::set1(bytes);
  };
  if constexpr (kFew == FewBits::kBits) {
    typename I::Int right[V];
    repeat<V>([&](auto v) QUANTRAIN_INLINE { right[v] = few_weights<Arch, kFew, P, 0>(w, v); });
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      const typename I::Int x = x_of(r, 0);
      repeat<V>([&](auto v) QUANTRAIN_INLINE {
        sums[r][v] = I::count(sums[r][v], I::bit_and(x, right[v]));
        I::settle(sums[r][v]);
      });
    });
  } else if constexpr (I::kPairs) {
    repeat<kStepQuads<kFew> / 2>([&](auto half) QUANTRAIN_INLINE {
      typename I::Int right[2][V];
      repeat<2 * V>([&](auto i) QUANTRAIN_INLINE {
        right[i / V][i % V] = few_weights<Arch, kFew, P, 2 * half + i / V>(w, i % V);
      });
      repeat<R>([&](auto r) QUANTRAIN_INLINE {
        const typename I::Int x0 = x_of(r, 2 * half);
        const typename I::Int x1 = x_of(r, 2 * half + 1);
        repeat<V>([&](auto v) QUANTRAIN_INLINE {
          sums[r][v] = I::dot_two(sums[r][v], x0, right[0][v], x1, right[1][v]);
          I::settle(sums[r][v]);
        });
      });
    });
  } else {
    repeat<kStepQuads<kFew>>([&](auto quad) QUANTRAIN_INLINE {
      auto& to = quad % 2 == 0 ? sums : more;
      typename I::Int right[V];
      repeat<V>([&](auto v)
                    QUANTRAIN_INLINE { right[v] = few_weights<Arch, kFew, P, quad>(w, v); });
      repeat<R>([&](auto r) QUANTRAIN_INLINE {
        const typename I::Int x = I::part(x_of(r, quad), 0);
        repeat<V>([&](auto v) QUANTRAIN_INLINE { to[r][v] = I::dot(to[r][v], x, right[v]); });
      });
    });
  }
}

/// sums[r][v] = start + the sums of R rows and V vectors of a panel of P. The sum of row r begins
/// with row_start[r].
template <class Arch, FewBits kFew, int P, int R, int V>
inline QUANTRAIN_INLINE void few_tile(const DotU8S8& p,
                                      const uint8_t* const* x,
                                      const int8_t* w,
                                      const int32_t* start,
                                      const int32_t* row_start,
                                      typename Ints<Arch>::Int (&sums)[R][V]) {
  using I = Ints<Arch>;
  constexpr bool kBits = kFew == FewBits::kBits;
  constexpr bool kTwice = !kBits && !I::kPairs && R * V <= 4;
  constexpr int kBytes = 4 * kStepQuads<kFew>;
  constexpr int64_t kStep = (kFew == FewBits::kNarrow ? 2 : 1) * P * I::kLanes * 4;
  typename I::Int acc[R][V];
  typename I::Int more[R][V];
  repeat<R * V>([&](auto i) QUANTRAIN_INLINE {
    acc[i / V][i % V] = I::zero();
    if constexpr (kTwice) more[i / V][i % V] = I::zero();
  });
  const uint8_t* left[R];
  repeat<R>([&](auto r) QUANTRAIN_INLINE { left[r] = x[r]; });
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    int64_t j = segment * p.segment_step;
    const int64_t end = j + 4 * p.quads;
    if constexpr (kBits && I::kCountedWords > 0) {
      while (j < end) {
        const int64_t stop = end - j < 4 * I::kCountedWords ? end : j + 4 * I::kCountedWords;
        typename I::Int counts[R][V];
        repeat<R * V>([&](auto i) QUANTRAIN_INLINE { counts[i / V][i % V] = I::zero(); });
        for (; j < stop; j += kBytes, w += kStep) {
          few_step<Arch, kFew, P, R, V>(left, j, w, counts, counts);
        }
        repeat<R * V>([&](auto i) QUANTRAIN_INLINE {
          acc[i / V][i % V] = I::add_counts(acc[i / V][i % V], counts[i / V][i % V]);
        });
      }
    } else {
      for (; j < end; j += kBytes, w += kStep) {
        few_step<Arch, kFew, P, R, V>(left, j, w, acc, kTwice ? more : acc);
      }
    }
  }
  repeat<R * V>([&](auto i) QUANTRAIN_INLINE {
    constexpr int r = i / V;
    constexpr int v = i % V;
    typename I::Int sum = I::load(start + v * I::kLanes);
    if constexpr (kFew != FewBits::kNarrow) sum = I::add(sum, I::set1(row_start[r]));
    if constexpr (kTwice) sum = I::add(sum, more[r][v]);
    if constexpr (kBits) sum = I::add(sum, acc[r][v]);
    sums[r][v] = I::add(sum, acc[r][v]);
    I::settle(sums[r][v]);
  });
}

/// The number of ones among the first `bytes` bytes of each segment.
template <class Arch>
QUANTRAIN_ONE_COPY int32_t count_row(const DotU8S8& p, const uint8_t* x) {
  int32_t ones = 0;
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    const uint8_t* const at = x + segment * p.segment_step;
    int64_t i = 0;
    for (; i + 8 <= p.bytes; i += 8) {
      uint64_t word;
      __builtin_memcpy(&word, at + i, 8);
      ones += __builtin_popcountll(word);
    }
    for (; i < p.bytes; i += 4) {
      uint32_t word;
      __builtin_memcpy(&word, at + i, 4);
      if (p.bytes - i < 4) word &= (1u << 8 * (p.bytes - i)) - 1;
      ones += __builtin_popcount(word);
    }
  }
  return ones;
}

/// The sum of x - offset over a row of at most one segment, modulo 2^32.
template <class Arch>
QUANTRAIN_ONE_COPY uint32_t sum_row(const DotU8S8& p, const uint8_t* x) {
  using I = Ints<Arch>;
  constexpr int64_t kBytes = 4 * I::kLanes;
  const int64_t length = p.segments * 4 * p.quads;
  typename I::Int sums = I::zero();
  int64_t j = 0;
  for (; j + kBytes <= length; j += kBytes) {
    const typename I::Int bytes = I::load(x + j);
    repeat<I::kSteps>([&](auto step) QUANTRAIN_INLINE {
      sums = I::dot(sums, I::part(bytes, step), I::set1(I::kPairs ? 0x00010001 : 0x01010101));
    });
  }
  int32_t lanes[I::kLanes];
  I::store(lanes, sums);
  uint32_t sum = 0;
  for (int i = 0; i < I::kLanes; ++i) sum += static_cast<uint32_t>(lanes[i]);
  for (; j < length; ++j) sum += static_cast<uint32_t>(x[j] - p.layout.offset);
  return sum;
}

template <class Arch, FewBits kFew, int P, int R, int V>
void few_rows(const DotU8S8& p,
              const int8_t* w,
              int64_t output,
              const int32_t* row_start,
              const EitherToMemory<Arch, V>& to_memory,
              int64_t& row) {
  for (; row + R <= p.rows; row += R) {
    typename Ints<Arch>::Int sums[R][V];
    few_tile<Arch, kFew, P, R, V>(p, p.x + row, w, p.start + output, row_start + row, sums);
    // Tall tiles are stored four rows at a time, like the others.
    constexpr int kStored = R < 4 ? R : 4;
    repeat<R / kStored>([&](auto i) QUANTRAIN_INLINE {
      typename Ints<Arch>::Int part[kStored][V];
      repeat<kStored * V>([&](auto at) QUANTRAIN_INLINE {
        part[at / V][at % V] = sums[i * kStored + at / V][at % V];
      });
      end_tile<Arch, kStored, V>(to_memory, (row + i * kStored) * p.stride, part);
    });
  }
}

template <class Arch, FewBits kFew, int V>
void few_panels(const DotU8S8& p) {
  using I = Ints<Arch>;
  constexpr bool kBits = kFew == FewBits::kBits;
  constexpr bool kFields = kFew == FewBits::kHalves || kFew == FewBits::kQuarters;
  int32_t row_start[kMostDotRows];
  if constexpr (kFew != FewBits::kNarrow) {
    for (int64_t row = 0; row < p.rows; ++row) {
      const auto raised = static_cast<uint32_t>(-p.layout.raised());
      row_start[row] = kBits ? -count_row<Arch>(p, p.x[row])
                             : static_cast<int32_t>(raised * sum_row<Arch>(p, p.x[row]));
    }
  }
  const int8_t* w = p.w;
  for (int64_t output = 0; output < p.outputs; output += V * I::kLanes, w += p.panel) {
    int64_t row = 0;
    // Where dot products of bytes are one instruction, taking weights apart costs about as much. So
    // many rows share it, in tiles of half a panel.
    if constexpr (kFields && !I::kPairs) {
      constexpr int kHalf = V / 2;
      int64_t end = 0;
      for (int half = 0; half < 2; ++half) {
        const int64_t first = output + half * kHalf * I::kLanes;
        if (first >= p.outputs || p.rows < kManyRows) break;
        const EitherToMemory<Arch, kHalf> to_memory(p, first);
        end = 0;
        few_rows<Arch, kFew, V, kManyRows, kHalf>(
            p, w + half * kHalf * I::kLanes * 4, first, row_start, to_memory, end);
      }
      row = end;
    }
    const EitherToMemory<Arch, V> to_memory(p, output);
    few_rows<Arch, kFew, V, 4, V>(p, w, output, row_start, to_memory, row);
    few_rows<Arch, kFew, V, 1, V>(p, w, output, row_start, to_memory, row);
  }
}

template <class Arch, FewBits kFew>
void few_width(const DotU8S8& p) {
  using I = Ints<Arch>;
  if (p.layout.width == I::kFewPanel * I::kLanes) return few_panels<Arch, kFew, I::kFewPanel>(p);
  // There are no narrower panels of fields.
  if constexpr (kFew == FewBits::kBits || kFew == FewBits::kNarrow) {
    few_panels<Arch, kFew, I::kFewPanel / 2>(p);
  }
}

template <class Arch>
void dot_few_bits(const DotU8S8& p) {
  using I = Ints<Arch>;
  if constexpr (I::kNarrow) {
    if (p.layout.few == FewBits::kNarrow) return few_width<Arch, FewBits::kNarrow>(p);
  }
  if constexpr (I::kFields) {
    if (p.layout.few == FewBits::kHalves) return few_width<Arch, FewBits::kHalves>(p);
    if (p.layout.few == FewBits::kQuarters) return few_width<Arch, FewBits::kQuarters>(p);
  }
  if constexpr (I::kFewPanel > 0) {
    if (p.layout.few == FewBits::kBits) few_width<Arch, FewBits::kBits>(p);
  }
}

}  // namespace quantrain::kernels::simd
