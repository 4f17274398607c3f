#pragma once

#include "framework/kernels/simd/integer_vector.hpp"
#include "framework/kernels/simd/lanes.hpp"

// Reductions, and functions with parameters for each row or column. All use 16 lanes, which hold
// adjacent elements of a row.
namespace quantrain::kernels::simd {

/// Sums n terms. load(i, at) -> Lanes loads up to 16 terms, starting with term i. `at` is the Whole
/// or the Part that for_lanes() passes.
template <class Arch, class Load>
inline QUANTRAIN_INLINE float sum_of_terms(int64_t n, const Load& load) {
  using L = Lanes<Arch>;
  constexpr int64_t kPart = 16 * kLongestChain;
  const auto part = [&](int64_t begin, int64_t end) QUANTRAIN_INLINE {
    L chain(0.0f);
    for_lanes<Arch>(end - begin, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      chain = chain + load(begin + i, at);
    });
    return chain;
  };
  return sum(n <= kPart ? part(0, n) : sum_of_parts<L>(n, kPart, part));
}

template <class Arch>
void sum_f32(int64_t n, const float* x, float* sum_of_all) {
  *sum_of_all =
      sum_of_terms<Arch>(n, [&](int64_t i, auto at) QUANTRAIN_INLINE { return at.load(x + i); });
}

template <class Arch>
void scale_rows_f32(int64_t rows, int64_t columns, const float* x, const float* factors, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const Lanes<Arch> factor(factors[r]);
    for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      at.store(y + i, at.load(x + i) * factor);
    });
  }
}

// x is read and written by memcpy, because its memory holds integers before and floats afterwards.
template <class Arch>
void scale_columns_s32_f32(int64_t rows, int64_t columns, const double* scale, float* x) {
  constexpr int64_t kSize = sizeof(float);
  static_assert(sizeof(int32_t) == kSize);
  for (int64_t r = 0; r < rows; ++r) {
    char* const row = reinterpret_cast<char*>(x + r * columns);
    for (int64_t c = 0; c < columns; ++c) {
      int32_t sum = 0;
      __builtin_memcpy(&sum, row + c * kSize, kSize);
      const float y = static_cast<float>(scale[c] * sum);
      __builtin_memcpy(row + c * kSize, &y, kSize);
    }
  }
}

// dots[r] is the dot product of row r of `a` and row r of `b`. The products are added in the order
// in which sum_f32 adds its terms. Rows that fit into one chain are summed side by side, so that no
// addition waits for the previous one.
template <class Arch>
void row_dots_f32(int64_t rows, int64_t columns, const float* a, const float* b, float* dots) {
  using L = Lanes<Arch>;
  constexpr int kRows = L::kParts <= 2 ? 4 : 2;
  int64_t r = 0;
  if (columns <= 16 * kLongestChain) {
    for (; r + kRows <= rows; r += kRows) {
      const float* const left = a + r * columns;
      const float* const right = b + r * columns;
      L chain[kRows];
#pragma GCC unroll 4
      for (int u = 0; u < kRows; ++u) chain[u] = L(0.0f);
      for_lanes<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
#pragma GCC unroll 4
        for (int u = 0; u < kRows; ++u)
          chain[u] = chain[u] + at.load(left + u * columns + i) * at.load(right + u * columns + i);
      });
#pragma GCC unroll 4
      for (int u = 0; u < kRows; ++u) dots[r + u] = sum(chain[u]);
    }
  }
  for (; r < rows; ++r) {
    const float* const left = a + r * columns;
    const float* const right = b + r * columns;
    dots[r] = sum_of_terms<Arch>(columns, [&](int64_t i, auto at) QUANTRAIN_INLINE {
      return at.load(left + i) * at.load(right + i);
    });
  }
}

/// W lanes side by side. A sum of columns reads them together, so that it visits memory in order.
template <class Arch, int W>
struct Several {
  Lanes<Arch> part[W];

  Several() = default;
  QUANTRAIN_INLINE explicit Several(float value) {
    for (int w = 0; w < W; ++w) part[w] = Lanes<Arch>(value);
  }
  QUANTRAIN_INLINE friend Several operator+(Several a, const Several& b) {
    for (int w = 0; w < W; ++w) a.part[w] = a.part[w] + b.part[w];
    return a;
  }
};

/// How many Lanes are summed side by side: 4 if kEach vectors for each of their parts fit into the
/// registers, else 1.
template <class Arch, int kEach>
inline constexpr int kSideBySide = kRegisters<Arch> >= (4 * kEach) * Lanes<Arch>::kParts ? 4 : 1;

/// Calls f(c, at, W) for each group of 16 * W columns, which starts with column c, then f(c, at, 1)
/// for the columns that are left. W is a constant.
template <class Arch, int W, class F>
inline QUANTRAIN_INLINE void for_columns(int64_t n, const F& f) {
  int64_t c = 0;
  if constexpr (W > 1) {
    for (; c + 16 * W <= n; c += 16 * W) f(c, Whole<Arch>{}, std::integral_constant<int, W>());
  }
  for_lanes<Arch>(n - c, [&](int64_t i, auto at) QUANTRAIN_INLINE {
    f(c + i, at, std::integral_constant<int, 1>());
  });
}

// Rows are summed in four chains, so that no addition waits for the previous one.
constexpr int kChains = 4;

/// Sums 16 * W columns over the rows. accumulate(chain, row, w) -> Lanes adds a row to a chain.
template <class Arch, int W, class Accumulate>
inline QUANTRAIN_INLINE Several<Arch, W> sum_rows(int64_t rows, const Accumulate& accumulate) {
  using S = Several<Arch, W>;
  return sum_of_parts<S>(
      rows, kChains * kLongestChain, [&](int64_t r, int64_t end) QUANTRAIN_INLINE {
        S chain[kChains];
#pragma GCC unroll 4
        for (int i = 0; i < kChains; ++i) chain[i] = S(0.0f);
        for (; r + kChains <= end; r += kChains) {
#pragma GCC unroll 4
          for (int i = 0; i < kChains; ++i) {
            for (int w = 0; w < W; ++w) chain[i].part[w] = accumulate(chain[i].part[w], r + i, w);
          }
        }
        for (; r < end; ++r) {
          for (int w = 0; w < W; ++w) chain[0].part[w] = accumulate(chain[0].part[w], r, w);
        }
        return (chain[0] + chain[1]) + (chain[2] + chain[3]);
      });
}

template <class Arch>
void column_sums_f32(int64_t rows, int64_t columns, const float* x, float* sums) {
  using L = Lanes<Arch>;
  for_columns<Arch, kSideBySide<Arch, kChains + 1>>(
      columns, [&](int64_t c, auto at, auto wide) QUANTRAIN_INLINE {
        const auto all =
            sum_rows<Arch, wide>(rows, [&](const L& chain, int64_t r, int w) QUANTRAIN_INLINE {
              return chain + at.load(x + r * columns + c + 16 * w);
            });
        for (int w = 0; w < wide; ++w) at.store(sums + c + 16 * w, all.part[w]);
      });
}

template <class Arch, bool kExtremes>
void square_sums(int64_t rows,
                 int64_t columns,
                 const float* x,
                 const float* mean,
                 float* sums,
                 float* smallest,
                 float* largest) {
  using L = Lanes<Arch>;
  for_columns<Arch, kSideBySide<Arch, kChains + 2>>(
      columns, [&](int64_t c, auto at, auto wide) QUANTRAIN_INLINE {
        L middle[wide];
        L low[wide];
        L high[wide];
        for (int w = 0; w < wide; ++w) {
          middle[w] = at.load(mean + c + 16 * w);
          low[w] = high[w] = at.load(x + c + 16 * w);
        }
        const auto all =
            sum_rows<Arch, wide>(rows, [&](const L& chain, int64_t r, int w) QUANTRAIN_INLINE {
              const L v = at.load(x + r * columns + c + 16 * w);
              if constexpr (kExtremes) {
                low[w] = min(low[w], v);
                high[w] = max(high[w], v);
              }
              const L d = v - middle[w];
              return fma(d, d, chain);
            });
        for (int w = 0; w < wide; ++w) {
          at.store(sums + c + 16 * w, all.part[w]);
          if constexpr (kExtremes) {
            at.store(smallest + c + 16 * w, low[w]);
            at.store(largest + c + 16 * w, high[w]);
          }
        }
      });
}

template <class Arch>
void column_square_sums_f32(int64_t rows,
                            int64_t columns,
                            const float* x,
                            const float* mean,
                            float* sums,
                            float* min,
                            float* max) {
  (min != nullptr ? square_sums<Arch, true>
                  : square_sums<Arch, false>)(rows, columns, x, mean, sums, min, max);
}

/// Loads the gradients of elements i to i + 15, or fewer at the end. They are 0 where the mask has
/// a 0. With a mask, i is a multiple of 8.
template <class Arch, bool kMasked, class At>
inline QUANTRAIN_INLINE Lanes<Arch> masked(const float* grad,
                                           const uint8_t* mask,
                                           int64_t i,
                                           At at) {
  using L = Lanes<Arch>;
  L lanes = at.load(grad + i);
  if constexpr (kMasked) {
    uint32_t bits = mask[i / 8];
    if (at.count() > 8) bits |= static_cast<uint32_t>(mask[i / 8 + 1]) << 8;
#pragma GCC unroll 4
    for (int k = 0; k < L::kParts; ++k)
      lanes.part[k] = Ints<Arch>::keep(bits >> (k * L::kEach), lanes.part[k]);
  }
  return lanes;
}

/// Two sums over the same rows: `plain` is the sum of grad, `product` that of grad * (x - mean).
template <class Arch, int W>
struct GradSums {
  Several<Arch, W> plain, product;
  QUANTRAIN_INLINE friend GradSums operator+(const GradSums& a, const GradSums& b) {
    return {a.plain + b.plain, a.product + b.product};
  }
};

template <class Arch, bool kMasked>
void grad_sums(int64_t rows,
               int64_t columns,
               const float* x,
               const float* mean,
               const float* grad_y,
               const uint8_t* mask,
               float* sum_grad,
               float* sum_grad_x) {
  using L = Lanes<Arch>;
  // Two chains of two sums, the mean, and a value.
  for_columns<Arch, kSideBySide<Arch, 6>>(
      columns, [&](int64_t c, auto at, auto wide) QUANTRAIN_INLINE {
        L middle[wide];
        for (int w = 0; w < wide; ++w) middle[w] = at.load(mean + c + 16 * w);
        using Sums = GradSums<Arch, wide>;
        using S = Several<Arch, wide>;
        const Sums sums = sum_of_parts<Sums>(
            rows, 2 * kLongestChain, [&](int64_t r, int64_t end) QUANTRAIN_INLINE {
              Sums chain[2] = {{S(0.0f), S(0.0f)}, {S(0.0f), S(0.0f)}};
              const auto row = [&](int64_t k, Sums& to) QUANTRAIN_INLINE {
                for (int w = 0; w < wide; ++w) {
                  const int64_t i = k * columns + c + 16 * w;
                  const L grad = masked<Arch, kMasked>(grad_y, mask, i, at);
                  to.plain.part[w] = to.plain.part[w] + grad;
                  to.product.part[w] = fma(grad, at.load(x + i) - middle[w], to.product.part[w]);
                }
              };
              for (; r + 2 <= end; r += 2) {
                row(r, chain[0]);
                row(r + 1, chain[1]);
              }
              if (r < end) row(r, chain[0]);
              return chain[0] + chain[1];
            });
        for (int w = 0; w < wide; ++w) {
          at.store(sum_grad + c + 16 * w, sums.plain.part[w]);
          at.store(sum_grad_x + c + 16 * w, sums.product.part[w]);
        }
      });
}

template <class Arch>
void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          const uint8_t* mask,
                          float* sum_grad,
                          float* sum_grad_x) {
  (mask != nullptr
       ? grad_sums<Arch, true>
       : grad_sums<Arch, false>)(rows, columns, x, mean, grad_y, mask, sum_grad, sum_grad_x);
}

/// Calls f(i, k, at, count) until all n elements were visited. Elements i, i + period, ..
/// i + (count - 1) * period, and the 15 after each, use the parameters from entry k on. count is a
/// constant, kTogether or 1. Elements are visited almost in the order of memory, as prefetching
/// needs.
template <class Arch, int kTogether, class F>
inline QUANTRAIN_INLINE void for_periods(int64_t n, int64_t first, int64_t period, const F& f) {
  constexpr std::integral_constant<int, 1> one;
  constexpr std::integral_constant<int, kTogether> together;
  int64_t i = 0;
  int64_t k = first;
  while (i + 16 <= n) {
    if (k == 0 && kTogether > 1 && i + kTogether * period <= n) {
      for (; k < period; i += 16, k += 16) f(i, k, Whole<Arch>{}, together);
      i += (kTogether - 1) * period;
    } else {
      const int64_t end = i + (n - i < period - k ? n - i : period - k);
      for (; i + 16 <= end; i += 16, k += 16) f(i, k, Whole<Arch>{}, one);
    }
    if (k == period) k = 0;
  }
  if (i < n) f(i, k, Part<Arch>{static_cast<int>(n - i)}, one);
}

template <class Arch>
void column_affine_f32(int64_t n,
                       int64_t first,
                       int64_t period,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y) {
  for_periods<Arch, 1>(n, first, period, [&](int64_t i, int64_t k, auto at, auto) QUANTRAIN_INLINE {
    at.store(y + i, fma(at.load(x + i), at.load(scale + k), at.load(shift + k)));
  });
}

template <class Arch, bool kMasked>
void batch_norm_gradient(int64_t n, int64_t first, int64_t period, const BatchNormBackwardF32& p) {
  using L = Lanes<Arch>;
  // The compiler cannot know that writing grad_x leaves p as it is.
  const float* const x = p.x;
  const float* const grad_y = p.grad_y;
  const uint8_t* const mask = p.mask;
  float* const grad_x = p.grad_x;
  for_periods<Arch, 4>(
      n, first, period, [&](int64_t i, int64_t k, auto at, auto count) QUANTRAIN_INLINE {
        const L middle = at.load(p.mean + k);
        const L of_grad = at.load(p.a + k);
        const L of_x = at.load(p.b + k);
        const L constant = at.load(p.d + k);
        for (int u = 0; u < count; ++u, i += period) {
          const L rest = fma(of_x, at.load(x + i) - middle, constant);
          at.store(grad_x + i, fma(of_grad, masked<Arch, kMasked>(grad_y, mask, i, at), rest));
        }
      });
}

template <class Arch>
void batch_norm_backward_f32(int64_t n,
                             int64_t first,
                             int64_t period,
                             const BatchNormBackwardF32& p) {
  (p.mask != nullptr ? batch_norm_gradient<Arch, true>
                     : batch_norm_gradient<Arch, false>)(n, first, period, p);
}

}  // namespace quantrain::kernels::simd
