#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {

// Here a panel holds k rows of n columns without gaps.
void pack_f32(const PackF32& p) {
  for (int64_t i = p.k_begin; i < p.k_end; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      p.to[i * p.n + j] = p.b[(i - p.k_begin) * p.row_stride + j * p.col_stride];
    }
  }
}

void transpose_f32(int64_t rows,
                   int64_t columns,
                   const float* from,
                   int64_t from_stride,
                   float* to,
                   int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

namespace {

template <class T>
T* row_of(const RowsF32<T>& rows, int64_t run, int64_t i) {
  return (rows.rows != nullptr ? rows.rows[i] : rows.first + i * rows.row_step) +
         run * rows.run_step;
}

}  // namespace

void tiles_f32(const TilesF32& p) {
  const int64_t b_step = p.b_step == 0 ? p.n : p.b_step;
  const int64_t b_unit = p.b_step == 0 ? p.n : 1;
  for (int64_t row = 0; row < p.runs * p.m; ++row) {
    const float* const a = row_of(p.a, row / p.m, row % p.m);
    float* const c = row_of(p.c, row / p.m, row % p.m) + p.column;
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0.0f;
      for (int64_t s = 0; s < p.segments; ++s) {
        for (int64_t t = 0; t < p.length; ++t) {
          sum += a[p.segment[s].a + t * p.a_step] * p.b[p.segment[s].b * b_unit + t * b_step + j];
        }
      }
      if (p.accumulate) sum += c[j];
      if (p.bias != nullptr) sum += p.bias[j];
      c[j] = sum < p.lo ? p.lo : sum > p.hi ? p.hi : sum;
    }
  }
}

namespace {

/// b(t, j) is b[t * step + j * column_step].
void multiply(const FewF32& p, int64_t step, int64_t column_step) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double exact = 0.0;  // k is not bounded
      for (int64_t t = 0; t < p.k; ++t) {
        exact += static_cast<double>(p.a[i * p.a_step + t] * p.b[t * step + j * column_step]);
      }
      float& c = p.c[i * p.c_step + j];
      auto sum = static_cast<float>(exact);
      if (p.accumulate) sum += c;
      if (p.bias != nullptr) sum += p.bias[j];
      c = sum < p.lo ? p.lo : sum > p.hi ? p.hi : sum;
    }
  }
}

}  // namespace

void dots_f32(const FewF32& p) { multiply(p, 1, p.b_step); }

void chains_f32(const FewF32& p) { multiply(p, p.b_step, 1); }

}  // namespace quantrain::kernels::reference
