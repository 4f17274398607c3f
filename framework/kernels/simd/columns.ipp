#pragma once

#include "framework/kernels/simd/lanes.hpp"

// Reductions in 16 lanes, and what is done by column, lanes running along the columns.
namespace quantrain::kernels::simd {

template <class Arch>
void sum_f32(int64_t n, const float* x, float* sum_of_all) {
  Lanes<Arch> total(0.0f);
  for_lanes<Arch>(
      n, [&](int64_t i, auto at) __attribute__((always_inline)) {
        total = total + at.load(x + i);
      });
  *sum_of_all = sum(total);
}

// Rows are summed in four chains, so that an addition need not wait for the one before.
constexpr int kChains = 4;

/// Calls term(row, at) -> Lanes for each row of 16 columns from c on and gives back their sum.
template <class Arch, class At, class Term>
QUANTRAIN_LANES Lanes<Arch> sum_rows(int64_t rows, At at, const Term& accumulate) {
  using L = Lanes<Arch>;
  L chain[kChains];
#pragma GCC unroll 4
  for (int i = 0; i < kChains; ++i) chain[i] = L(0.0f);
  int64_t r = 0;
  for (; r + kChains <= rows; r += kChains) {
#pragma GCC unroll 4
    for (int i = 0; i < kChains; ++i) chain[i] = accumulate(chain[i], r + i, at);
  }
  for (; r < rows; ++r) chain[0] = accumulate(chain[0], r, at);
  return (chain[0] + chain[1]) + (chain[2] + chain[3]);
}

template <class Arch>
void column_sums_f32(int64_t rows, int64_t columns, const float* x, float* sums) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(
      columns, [&](int64_t c, auto at) __attribute__((always_inline)) {
        at.store(sums + c,
                 sum_rows<Arch>(
                     rows, at, [&](const L& chain, int64_t r, auto) __attribute__((always_inline)) {
                       return chain + at.load(x + r * columns + c);
                     }));
      });
}

template <class Arch>
void column_square_sums_f32(
    int64_t rows, int64_t columns, const float* x, const float* mean, float* sums) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(
      columns, [&](int64_t c, auto at) __attribute__((always_inline)) {
        const L middle = at.load(mean + c);
        at.store(sums + c,
                 sum_rows<Arch>(
                     rows, at, [&](const L& chain, int64_t r, auto) __attribute__((always_inline)) {
                       const L d = at.load(x + r * columns + c) - middle;
                       return fma(d, d, chain);
                     }));
      });
}

template <class Arch>
void column_grad_sums_f32(int64_t rows,
                          int64_t columns,
                          const float* x,
                          const float* mean,
                          const float* grad_y,
                          float* sum_grad,
                          float* sum_grad_x) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(
      columns, [&](int64_t c, auto at) __attribute__((always_inline)) {
        const L middle = at.load(mean + c);
        L plain[2] = {L(0.0f), L(0.0f)};
        L product[2] = {L(0.0f), L(0.0f)};
        const auto row = [&](int64_t r, int i) __attribute__((always_inline)) {
          const L grad = at.load(grad_y + r * columns + c);
          plain[i] = plain[i] + grad;
          product[i] = fma(grad, at.load(x + r * columns + c) - middle, product[i]);
        };
        int64_t r = 0;
        for (; r + 2 <= rows; r += 2) {
          row(r, 0);
          row(r + 1, 1);
        }
        if (r < rows) row(r, 0);
        at.store(sum_grad + c, plain[0] + plain[1]);
        at.store(sum_grad_x + c, product[0] + product[1]);
      });
}

template <class Arch>
void column_affine_f32(int64_t rows,
                       int64_t columns,
                       const float* x,
                       const float* scale,
                       const float* shift,
                       float* y) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(
      columns, [&](int64_t c, auto at) __attribute__((always_inline)) {
        const L factor = at.load(scale + c);
        const L summand = at.load(shift + c);
        for (int64_t i = c; i < rows * columns; i += columns)
          at.store(y + i, fma(at.load(x + i), factor, summand));
      });
}

template <class Arch>
void batch_norm_backward_f32(int64_t rows,
                             int64_t columns,
                             const float* x,
                             const float* mean,
                             const float* grad_y,
                             const float* a,
                             const float* b,
                             const float* d,
                             float* grad_x) {
  using L = Lanes<Arch>;
  for_lanes<Arch>(
      columns, [&](int64_t c, auto at) __attribute__((always_inline)) {
        const L middle = at.load(mean + c);
        const L of_grad = at.load(a + c);
        const L of_x = at.load(b + c);
        const L constant = at.load(d + c);
        for (int64_t i = c; i < rows * columns; i += columns) {
          const L rest = fma(of_x, at.load(x + i) - middle, constant);
          at.store(grad_x + i, fma(of_grad, at.load(grad_y + i), rest));
        }
      });
}

}  // namespace quantrain::kernels::simd
