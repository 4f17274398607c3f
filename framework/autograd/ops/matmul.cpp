#include "framework/autograd/ops/matmul.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/gemm.hpp"

namespace quantrain {
namespace {

using kernels::MatrixF32;

/// `batches` products [m, k] * [k, n]. If b has rank 2, this is a single product with a tall left
/// operand.
struct Products {
  int64_t batches = 1, m, n, k;

  Products(const Shape& a, const Shape& b) : m(a[-2]), n(b[-1]), k(a[-1]) {
    for (int i = 0; i < a.rank() - 2; ++i) (b.rank() == 2 ? m : batches) *= a[i];
  }
};

class MatMulNode : public Node {
 public:
  std::string_view type() const override { return "matmul"; }
  QuantizationTraits traits() const override { return {.takes_data = false}; }
  bool reads_input(size_t i) const override { return i < 2 && needs_grad(1 - i); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Products p(input(0).shape(), input(1).shape());
    const Floats grad = grad_y.floats();
    std::vector<Tensor> grads(2);
    if (needs_grad(0)) {
      grads[0] = Tensor::empty(input(0).shape());
      const Floats b = input(1).floats();
      float* const out = grads[0].mutable_data();
      for (int64_t i = 0; i < p.batches; ++i) {
        const MatrixF32 rhs{b + i * p.k * p.n, p.n, 1};
        kernels::gemm_f32(p.m,
                          p.k,
                          p.n,
                          MatrixF32{grad + i * p.m * p.n, p.n, 1},
                          rhs.transposed(),
                          out + i * p.m * p.k,
                          p.k);
      }
    }
    if (needs_grad(1)) {
      grads[1] = Tensor::empty(input(1).shape());
      const Floats a = input(0).floats();
      float* const out = grads[1].mutable_data();
      for (int64_t i = 0; i < p.batches; ++i) {
        const MatrixF32 lhs{a + i * p.m * p.k, p.k, 1};
        kernels::gemm_f32(p.k,
                          p.n,
                          p.m,
                          lhs.transposed(),
                          MatrixF32{grad + i * p.m * p.n, p.n, 1},
                          out + i * p.k * p.n,
                          p.n);
      }
    }
    return grads;
  }
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.rank() < 2 || b.rank() < 2) {
    throw ShapeError(
        "matmul", "operands need two axes or more: lhs ", a.shape(), ", rhs ", b.shape());
  }
  if (a.dim(-1) != b.dim(-2)) {
    throw ShapeError("matmul", "inner dimensions differ: lhs ", a.shape(), ", rhs ", b.shape());
  }
  if (b.rank() > 2 &&
      !std::equal(a.shape().begin(), a.shape().end() - 2, b.shape().begin(), b.shape().end() - 2)) {
    throw ShapeError("matmul", "leading dimensions differ: lhs ", a.shape(), ", rhs ", b.shape());
  }
  const Products p(a.shape(), b.shape());
  std::vector<int64_t> extents(a.shape().begin(), a.shape().end());
  extents.back() = p.n;
  Tensor y = Tensor::empty(Shape(extents));
  const Floats lhs = a.floats();
  const Floats rhs = b.floats();
  float* const out = y.mutable_data();
  for (int64_t i = 0; i < p.batches; ++i) {
    kernels::gemm_f32(p.m,
                      p.n,
                      p.k,
                      {lhs + i * p.m * p.k, p.k, 1},
                      MatrixF32{rhs + i * p.k * p.n, p.n, 1},
                      out + i * p.m * p.n,
                      p.n);
  }
  return record<MatMulNode>(std::move(y), {a, b});
}

}  // namespace quantrain
