#pragma once

#include "framework/kernels/simd/integer_dot.ipp"

// Products of bytes with weights of fewer bits, and products of bits. See FewBits in params.hpp for
// the forms of their panels. Tiles and stores are those of integer_dot.ipp.
namespace quantrain::kernels::simd {

/// Stands for all fields in the templates below. How many a byte has is known when they run,
/// because kernels of their own for each number would make programs larger.
inline constexpr FewBits kAnyFields = FewBits::kHalves;

/// How to take fields apart.
template <class Arch>
struct Fields {
  using I = Ints<Arch>;
  int count;
  typename I::Int mask;
  typename I::Shift shift[8];

  explicit QUANTRAIN_INLINE Fields(const PanelLayout& layout)
      : count(static_cast<int>(layout.per_byte())) {
    const int bits = 8 / count;
    mask = I::set1(static_cast<int32_t>(((1u << bits) - 1) * 0x01010101u));
    for (int i = 0; i < count; ++i) shift[i] = I::shift_by(i * bits);
  }
};

/// How many groups of 4 bytes of x a step multiplies.
template <FewBits kFew>
inline constexpr int kStepQuads = kFew == FewBits::kBits ? 1 : 2;

/// The weights of group `quad` of a step, for vector v of a panel of P vectors. Of fields, a step
/// begins with field `first`.
template <class Arch, FewBits kFew, int P>
inline QUANTRAIN_INLINE typename Ints<Arch>::Int few_weights(
    const int8_t* w, const Fields<Arch>& fields, int first, int quad, int v) {
  using I = Ints<Arch>;
  if constexpr (kFew == kAnyFields) {
    const typename I::Int bytes = I::load(w + v * I::kLanes * 4);
    return I::bit_and(I::srl(bytes, fields.shift[first + quad]), fields.mask);
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
                                      const Fields<Arch>& fields,
                                      int first,
                                      typename Ints<Arch>::Int (&sums)[R][V],
                                      typename Ints<Arch>::Int (&more)[R][V]) {
  using I = Ints<Arch>;
  const auto x_of = [&](int r, int quad) QUANTRAIN_INLINE {
    int32_t bytes;
    __builtin_memcpy(&bytes, left[r] + j + 4 * quad, 4);
    return I::set1(bytes);
  };
  const auto weights = [&](int quad, int v) QUANTRAIN_INLINE {
    return few_weights<Arch, kFew, P>(w, fields, first, quad, v);
  };
  if constexpr (kFew == FewBits::kBits) {
    typename I::Int right[V];
    repeat<V>([&](auto v) QUANTRAIN_INLINE { right[v] = weights(0, v); });
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      const typename I::Int x = x_of(r, 0);
      repeat<V>([&](auto v) QUANTRAIN_INLINE {
        sums[r][v] = I::count(sums[r][v], I::bit_and(x, right[v]));
        I::settle(sums[r][v]);
      });
    });
  } else if constexpr (I::kPairs) {
    typename I::Int right[2][V];
    repeat<2 * V>([&](auto i) QUANTRAIN_INLINE { right[i / V][i % V] = weights(i / V, i % V); });
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      const typename I::Int x0 = x_of(r, 0);
      const typename I::Int x1 = x_of(r, 1);
      repeat<V>([&](auto v) QUANTRAIN_INLINE {
        sums[r][v] = I::dot_two(sums[r][v], x0, right[0][v], x1, right[1][v]);
        I::settle(sums[r][v]);
      });
    });
  } else {
    repeat<2>([&](auto quad) QUANTRAIN_INLINE {
      auto& to = quad == 0 ? sums : more;
      typename I::Int right[V];
      repeat<V>([&](auto v) QUANTRAIN_INLINE { right[v] = weights(quad, v); });
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
                                      const Fields<Arch>& fields,
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
          few_step<Arch, kFew, P, R, V>(left, j, w, fields, 0, counts, counts);
        }
        repeat<R * V>([&](auto i) QUANTRAIN_INLINE {
          acc[i / V][i % V] = I::add_counts(acc[i / V][i % V], counts[i / V][i % V]);
        });
      }
    } else {
      const int groups = kFew == kAnyFields ? fields.count : kStepQuads<kFew>;
      for (; j < end; w += kStep) {
        for (int first = 0; first < groups; first += kStepQuads<kFew>, j += kBytes)
          few_step<Arch, kFew, P, R, V>(left, j, w, fields, first, acc, kTwice ? more : acc);
      }
    }
  }
  repeat<R * V>([&](auto i) QUANTRAIN_INLINE {
    constexpr int r = i / V;
    constexpr int v = i % V;
    typename I::Int sum = I::load(start + v * I::kLanes);
    if constexpr (kFew != FewBits::kNarrow) sum = I::add(sum, I::set1(row_start[r]));
    if constexpr (kTwice) acc[r][v] = I::add(acc[r][v], more[r][v]);
    if (kBits || (kFew == kAnyFields && fields.count == 8)) sum = I::add(sum, acc[r][v]);
    sums[r][v] = I::add(sum, acc[r][v]);
    I::settle(sums[r][v]);
  });
}

/// The number of ones among the first `terms` bytes of each segment.
template <class Arch>
QUANTRAIN_ONE_COPY int32_t count_row(const DotU8S8& p, const uint8_t* x) {
  int32_t ones = 0;
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    const uint8_t* const at = x + segment * p.segment_step;
    int64_t i = 0;
    for (; i + 8 <= p.terms; i += 8) {
      uint64_t word;
      __builtin_memcpy(&word, at + i, 8);
      ones += __builtin_popcountll(word);
    }
    for (; i < p.terms; i += 4) {
      uint32_t word;
      __builtin_memcpy(&word, at + i, 4);
      if (p.terms - i < 4) word &= (1u << 8 * (p.terms - i)) - 1;
      ones += __builtin_popcount(word);
    }
  }
  return ones;
}

/// The sum of x - offset over a row, modulo 2^32: over all bytes that are multiplied or, of
/// eighths, over the terms. An absent weight of eighths is stored as 0, so its term must not be
/// counted as -1.
template <class Arch>
QUANTRAIN_ONE_COPY uint32_t sum_row(const DotU8S8& p, const uint8_t* x) {
  using I = Ints<Arch>;
  constexpr int64_t kBytes = 4 * I::kLanes;
  const int64_t length = p.layout.few == FewBits::kEighths ? p.terms : 4 * p.quads;
  typename I::Int sums = I::zero();
  uint32_t sum = 0;
  for (int64_t segment = 0; segment < p.segments; ++segment, x += p.segment_step) {
    int64_t j = 0;
    for (; j + kBytes <= length; j += kBytes) {
      const typename I::Int bytes = I::load(x + j);
      repeat<I::kSteps>([&](auto step) QUANTRAIN_INLINE {
        sums = I::dot(sums, I::part(bytes, step), I::set1(I::kPairs ? 0x00010001 : 0x01010101));
      });
    }
    for (; j < length; ++j) sum += static_cast<uint32_t>(x[j] - p.layout.offset);
  }
  int32_t lanes[I::kLanes];
  I::store(lanes, sums);
  for (int i = 0; i < I::kLanes; ++i) sum += static_cast<uint32_t>(lanes[i]);
  return sum;
}

template <class Arch, FewBits kFew, int P, int R, int V>
void few_rows(const DotU8S8& p,
              const int8_t* w,
              int64_t output,
              const int32_t* row_start,
              const Fields<Arch>& fields,
              const EitherToMemory<Arch, V>& to_memory,
              int64_t& row) {
  for (; row + R <= p.rows; row += R) {
    typename Ints<Arch>::Int sums[R][V];
    few_tile<Arch, kFew, P, R, V>(p, p.x + row, w, p.start + output, row_start + row, fields, sums);
    end_tile<Arch, R, V>(to_memory, row * p.stride, sums);
  }
}

template <class Arch, FewBits kFew, int V>
void few_panels(const DotU8S8& p) {
  using I = Ints<Arch>;
  constexpr bool kBits = kFew == FewBits::kBits;
  int32_t row_start[kMostDotRows];
  if constexpr (kFew != FewBits::kNarrow) {
    for (int64_t row = 0; row < p.rows; ++row) {
      const auto raised = static_cast<uint32_t>(-p.layout.raised());
      row_start[row] = kBits ? -count_row<Arch>(p, p.x[row])
                             : static_cast<int32_t>(raised * sum_row<Arch>(p, p.x[row]));
    }
  }
  const Fields<Arch> fields(p.layout);
  const int8_t* w = p.w;
  for (int64_t output = 0; output < p.outputs; output += V * I::kLanes, w += p.panel) {
    int64_t row = 0;
    const EitherToMemory<Arch, V> to_memory(p, output);
    few_rows<Arch, kFew, V, 4, V>(p, w, output, row_start, fields, to_memory, row);
    few_rows<Arch, kFew, V, 1, V>(p, w, output, row_start, fields, to_memory, row);
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
    if (p.layout.per_byte() > 1) return few_width<Arch, kAnyFields>(p);
  }
  if constexpr (I::kFewPanel > 0) {
    if (p.layout.few == FewBits::kBits) few_width<Arch, FewBits::kBits>(p);
  }
}

}  // namespace quantrain::kernels::simd
