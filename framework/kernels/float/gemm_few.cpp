#include "framework/kernels/float/product.hpp"

// Products with few rows or columns. A tile of so few sums has too few independent multiply-adds to
// keep the CPU busy, or leaves vector lanes empty.
namespace quantrain::kernels {
namespace {

/// How many chains make up a sum.
int64_t chains_of(SumForm form, int64_t n) {
  return form == SumForm::kDots ? 16 : n > kPanelColumns ? 1 : 4;
}

/// Adds up the terms k of each sum of p, with dots_f32 or chains_f32. Tasks split the rows or
/// columns, never the terms.
void multiply_terms(SumForm form, const Product& p, Terms k, const MatrixF32& b) {
  const bool dots = form == SumForm::kDots;
  const auto kernel = dots ? float_table().dots_f32 : float_table().chains_f32;
  FewF32 few;
  few.m = p.m;
  few.n = p.n;
  few.k = k.count();
  few.chains = chains_of(form, p.n);
  few.a = p.a.data + k.begin;
  few.a_step = p.a.row_stride;
  few.b = b.data + k.begin * b.row_stride;
  few.b_step = dots ? b.col_stride : b.row_stride;
  few.c = p.c;
  few.c_step = p.c_stride;
  set_epilogue(few, p.epilogue, 0);
  // A single thread computes chains in one call, which reads whole rows of B. Several calls would
  // read parts of rows, at only two thirds of the speed.
  if (p.m * p.n * few.k <= kTaskWork || (!dots && threads() == 1)) return kernel(few);
  if (p.m > p.n) {
    parallel_for_even(p.m, kTaskWork / (p.n * few.k) + 1, [&](int64_t row, int64_t end) {
      FewF32 part = few;
      part.m = end - row;
      part.a += row * few.a_step;
      part.c += row * few.c_step;
      kernel(part);
    });
  } else {
    const int64_t panels = kTaskWork / (p.m * few.k * kPanelColumns) + 1;
    parallel_for(p.n, panels * kPanelColumns, [&](int64_t column, int64_t end) {
      FewF32 part = few;
      part.n = end - column;
      part.b += column * b.col_stride;
      part.c += column;
      if (few.bias != nullptr) part.bias += column;
      kernel(part);
    });
  }
}

}  // namespace

void multiply_few(SumForm form, const Product& p, int64_t k, const MatrixF32& b) {
  const int64_t longest = kLongestChain * chains_of(form, p.n);
  if (k <= longest) return multiply_terms(form, p, {0, k}, b);
  add_chunks(p, k, [&](const Product& chunk, Terms terms) {
    for_blocks(terms, longest, [&](Terms block, bool first, bool last) {
      const EpilogueF32 epilogue{last ? chunk.epilogue.bias : nullptr,
                                 last ? chunk.epilogue.activation : Activation::kNone,
                                 chunk.epilogue.accumulate || !first};
      multiply_terms(
          form, {chunk.m, chunk.n, chunk.a, chunk.c, chunk.c_stride, epilogue}, block, b);
    });
  });
}

}  // namespace quantrain::kernels
