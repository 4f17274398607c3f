#include "framework/kernels/gemm.hpp"

#include <algorithm>

#include "framework/core/parallel.hpp"

namespace quantrain::kernels {

PackedMatrixF32::PackedMatrixF32(int64_t k, int64_t n, MatrixF32 b) : k_(k), n_(n), data_(k * n) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) data_[i * n + j] = b.data[i * b.row_stride + j * b.col_stride];
  }
}

void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              MatrixF32 a,
              MatrixF32 b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  gemm_f32(m, a, PackedMatrixF32(k, n, b), c, c_stride, epilogue);
}

void gemm_f32(int64_t m,
              MatrixF32 a,
              const PackedMatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue) {
  const int64_t n = b.n();
  const int64_t k = b.k();
  const float hi = epilogue.activation == Activation::kRelu6 ? 6.0f : __builtin_inff();
  parallel_for(m, std::max<int64_t>(1, 100000 / (n * k + 1)), [&](int64_t begin, int64_t end) {
    Buffer<float> sums(n);
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t p = 0; p < k; ++p) {
        const float factor = a.data[i * a.row_stride + p * a.col_stride];
        const float* const row = b.data() + p * n;
        for (int64_t j = 0; j < n; ++j) sums[j] += factor * row[j];
      }
      for (int64_t j = 0; j < n; ++j) {
        float& to = c[i * c_stride + j];
        float y = sums[j] + (epilogue.accumulate ? to : 0.0f) +
                  (epilogue.bias == nullptr ? 0.0f : epilogue.bias[j]);
        if (epilogue.activation != Activation::kNone) y = std::clamp(y, 0.0f, hi);
        to = y;
      }
    }
  });
}

}  // namespace quantrain::kernels
