#pragma once

#include <cstdint>

#include "framework/arithmetic/activation.hpp"
#include "framework/core/buffer.hpp"
#include "framework/kernels/code_view.hpp"

// Matrix products in float32, split into blocks over threads. The caller has checked every size, so
// these functions throw only if memory runs out. Results have the same bits with any number of
// threads, and the same bits on AVX2 as on AVX-512.
namespace quantrain::kernels {

/// A matrix in place. Element (i, j) is data[i * row_stride + j * col_stride]; one of the strides
/// is 1.
struct MatrixF32 {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 1;

  MatrixF32 transposed() const { return {data, col_stride, row_stride}; }
};

/// A matrix of codes in place. Its rows are row_stride bytes apart. A product dequantizes the part
/// that it works on.
struct CodeMatrix {
  CodeView codes;
  int64_t row_stride = 0;
};

/// What happens to a sum before it is stored in c[m, n]. If accumulate is set, the old value of
/// c[m, n] is added. If bias is not null, bias[n] is added. Then the activation is applied.
struct EpilogueF32 {
  const float* bias = nullptr;
  Activation activation = Activation::kNone;
  bool accumulate = false;
};

/// A right-hand operand [K, N], packed once for many products with the kernels of one instruction
/// set.
class PackedMatrixF32 {
 public:
  PackedMatrixF32() = default;
  PackedMatrixF32(int64_t k, int64_t n, const MatrixF32& b);
  PackedMatrixF32(int64_t k, int64_t n, const CodeMatrix& b);

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  const float* data() const { return data_.data(); }

 private:
  template <class B>
  void pack(const B& b);

  int64_t k_ = 0;
  int64_t n_ = 0;
  Buffer<float> data_;
};

/// c[M, N] (rows c_stride apart) = a[M, K] * b[K, N], then the epilogue. If K = 0, all sums are 0,
/// and the epilogue is applied to them. Sums run in the order of k, except in two cases:
///   - M = 1, and b is not packed;
///   - both operands are contiguous along k, and either M <= 16 and K >= 8 * M, or N <= 12 and
///     K >= 8 * N.
/// So the last bits of a row depend on whether it is multiplied alone. Sums of more than 1024 terms
/// are split, which keeps their rounding errors about as small as those of a pairwise sum.
/// docs/kernels.md, long sums
void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const MatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue = {});
void gemm_f32(int64_t m,
              int64_t n,
              int64_t k,
              const MatrixF32& a,
              const CodeMatrix& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue = {});
void gemm_f32(int64_t m,
              const MatrixF32& a,
              const PackedMatrixF32& b,
              float* c,
              int64_t c_stride,
              const EpilogueF32& epilogue = {});

}  // namespace quantrain::kernels
