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

// Rows are summed in four chains, so that no addition waits for the previous one.
constexpr int kChains = 4;

/// Sums 16 columns over the rows. accumulate(chain, row) -> Lanes adds a row to a chain.
template <class Arch, class Accumulate>
inline QUANTRAIN_INLINE Lanes<Arch> sum_rows(int64_t rows, const Accumulate& accumulate) {
  using L = Lanes<Arch>;
  return sum_of_parts<L>(
      rows, kChains * kLongestChain, [&](int64_t r, int64_t end) QUANTRAIN_INLINE {
        L chain[kChains];
#pragma GCC unroll 4
        for (int i = 0; i < kChains; ++i) chain[i] = L(0.0f);
        for (; r + kChains <= end; r += kChains) {
#pragma GCC unroll 4
          for (int i = 0; i < kChains; ++i) chain[i] = accumulate(chain[i], r + i);
        }
        for (; r < end; ++r) chain[0] = accumulate(chain[0], r);
        return (chain[0] + chain[1]) + (chain[2] + chain[3]);
      });
}

template <class Arch>
void column_sums_f32(int64_t rows, int64_t columns, const float* x, float* sums) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(columns, [&](int64_t c, auto at) QUANTRAIN_INLINE {
    at.store(sums + c, sum_rows<Arch>(rows, [&](const L& chain, int64_t r) QUANTRAIN_INLINE {
               return chain + at.load(x + r * columns + c);
             }));
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
  for_lanes<Arch>(columns, [&](int64_t c, auto at) QUANTRAIN_INLINE {
    const L middle = at.load(mean + c);
    L low = at.load(x + c);
    L high = low;
    at.store(sums + c, sum_rows<Arch>(rows, [&](const L& chain, int64_t r) QUANTRAIN_INLINE {
               const L v = at.load(x + r * columns + c);
               if constexpr (kExtremes) {
                 low = min(low, v);
                 high = max(high, v);
               }
               const L d = v - middle;
               return fma(d, d, chain);
             }));
    if constexpr (kExtremes) {
      at.store(smallest + c, low);
      at.store(largest + c, high);
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

/// Loads the gradients of elements i to i + 15, or fewer at the end of a row. They are 0 where the
/// mask has a 0. Without a mask, i may be any number, else it is a multiple of 8.
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
template <class Arch>
struct GradSums {
  Lanes<Arch> plain, product;
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
  for_lanes<Arch>(columns, [&](int64_t c, auto at) QUANTRAIN_INLINE {
    const L middle = at.load(mean + c);
    using Sums = GradSums<Arch>;
    const Sums sums =
        sum_of_parts<Sums>(rows, 2 * kLongestChain, [&](int64_t r, int64_t end) QUANTRAIN_INLINE {
          Sums chain[2] = {{L(0.0f), L(0.0f)}, {L(0.0f), L(0.0f)}};
          const auto row = [&](int64_t k, int i) QUANTRAIN_INLINE {
            const L grad = masked<Arch, kMasked>(grad_y, mask, k * columns + c, at);
            chain[i].plain = chain[i].plain + grad;
            chain[i].product = fma(grad, at.load(x + k * columns + c) - middle, chain[i].product);
          };
          for (; r + 2 <= end; r += 2) {
            row(r, 0);
            row(r + 1, 1);
          }
          if (r < end) row(r, 0);
          return chain[0] + chain[1];
        });
    at.store(sum_grad + c, sums.plain);
    at.store(sum_grad_x + c, sums.product);
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

template <class Arch>
void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(columns, [&](int64_t c, auto at) QUANTRAIN_INLINE {
    const L factor = at.load(scale + c);
    const L summand = at.load(shift + c);
    for (int64_t i = c; i < rows * columns; i += columns)
      at.store(y + i, fma(at.load(x + i), factor, summand));
  });
}

template <class Arch, bool kMasked>
void batch_norm_gradient(int64_t rows,
                         int64_t columns,
                         const float* x,
                         const float* mean,
                         const float* grad_y,
                         const uint8_t* mask,
                         const float* a,
                         const float* b,
                         const float* d,
                         float* grad_x) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(columns, [&](int64_t c, auto at) QUANTRAIN_INLINE {
    const L middle = at.load(mean + c);
    const L of_grad = at.load(a + c);
    const L of_x = at.load(b + c);
    const L constant = at.load(d + c);
    for (int64_t i = c; i < rows * columns; i += columns) {
      const L rest = fma(of_x, at.load(x + i) - middle, constant);
      at.store(grad_x + i, fma(of_grad, masked<Arch, kMasked>(grad_y, mask, i, at), rest));
    }
  });
}

template <class Arch>
void batch_norm_backward_f32(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* mean,
                             const float* grad_y,
                             const uint8_t* mask,
                             const float* a,
                             const float* b,
                             const float* d,
                             float* grad_x) {
  (mask != nullptr
       ? batch_norm_gradient<Arch, true>
       : batch_norm_gradient<Arch, false>)(rows, columns, x, mean, grad_y, mask, a, b, d, grad_x);
}

}  // namespace quantrain::kernels::simd
