#include "framework/autograd/ops/linear.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/integer_product.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/gemm.hpp"

namespace quantrain {
namespace {

using kernels::MatrixF32;

/// x [m, in], weight [out, in], y [m, out].
struct LinearShape {
  int64_t m, in, out;

  LinearShape(const Shape& x, const Shape& weight) : m(1), in(weight[1]), out(weight[0]) {
    for (int i = 0; i < x.rank() - 1; ++i) m *= x[i];
  }
};

/// c = a * values, where values are a matrix [k, n].
void multiply_matrix(
    int64_t m, int64_t n, int64_t k, const MatrixF32& a, const Tensor& values, float* c) {
  if (values.kind() == ValueKind::kCodes) {
    const QParams& params = TensorAccess::code_params(values);
    if (!params.per_channel() || (params.axis == 0 && values.rank() == 2)) {
      const kernels::CodeMatrix codes{values.codes()->view(), n};
      return kernels::gemm_f32(m, n, k, a, codes, c, n);
    }
  }
  const Floats floats = values.floats();
  kernels::gemm_f32(m, n, k, a, MatrixF32{floats, n, 1}, c, n);
}

class LinearNode : public Node {
 public:
  std::string_view type() const override { return "linear"; }
  QuantizationTraits traits() const override {
    return {.closes_range = true, .weight = 1, .folds_batch_norm = true, .layer = "Linear"};
  }
  bool reads_input(size_t i) const override { return i < 2 && needs_grad(1 - i); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const LinearShape s(input(0).shape(), input(1).shape());
    const Floats grad = grad_y.floats();
    const MatrixF32 grad_matrix{grad, s.out, 1};
    std::vector<Tensor> grads(3);
    if (needs_grad(0)) {
      grads[0] = Tensor::empty(input(0).shape());
      multiply_matrix(s.m, s.in, s.out, grad_matrix, input(1), grads[0].mutable_data());
    }
    if (needs_grad(1)) {
      grads[1] = Tensor::empty(input(1).shape());
      multiply_matrix(
          s.out, s.in, s.m, grad_matrix.transposed(), input(0), grads[1].mutable_data());
    }
    if (needs_grad(2)) {
      grads[2] = Tensor::empty({s.out});
      kernels::sum_rows_f32(s.m, s.out, grad, grads[2].mutable_data());
    }
    return grads;
  }
};

Shape linear_shape(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.rank() < 1 || weight.rank() != 2 || x.shape().back() != weight.dim(1)) {
    throw ShapeError("linear",
                     "x is not [..., in] of weight [out, in]: x ",
                     x.shape(),
                     ", weight ",
                     weight.shape());
  }
  if (bias.defined() && !(bias.shape() == Shape{weight.dim(0)})) {
    throw ShapeError(
        "linear", "bias ", bias.shape(), " is not [out] of weight [out, in] ", weight.shape());
  }
  std::vector<int64_t> extents(x.shape().begin(), x.shape().end());
  extents.back() = weight.dim(0);
  return Shape(extents);
}

Tensor linear_integers(const Shape& y, const LinearShape& s, IntegerProduct product) {
  int64_t rows = 1;  // of one sample
  for (int axis = 1; axis < y.rank() - 1; ++axis) rows *= y[axis];
  const int64_t n = y.rank() > 1 ? y[0] : 1;
  return accumulate(integer::QuantizedLinear{rows, s.in, s.out, {}}, std::move(product), n, y);
}

Tensor linear_floats(const Shape& shape,
                     const LinearShape& s,
                     const Tensor& x,
                     const Tensor& weight,
                     const Tensor& bias) {
  Tensor y = Tensor::empty(shape);
  const Floats lhs = x.floats();
  const Floats rhs = weight.floats();
  kernels::EpilogueF32 epilogue;
  if (bias.defined()) epilogue.bias = bias.data();
  kernels::gemm_f32(s.m,
                    s.out,
                    s.in,
                    {lhs, s.in, 1},
                    MatrixF32{rhs, s.in, 1}.transposed(),
                    y.mutable_data(),
                    s.out,
                    epilogue);
  return y;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Shape shape = linear_shape(x, weight, bias);
  const LinearShape s(x.shape(), weight.shape());
  std::optional<IntegerProduct> integers = integer_product("linear", x, weight, bias, s.in);
  Tensor y = integers ? linear_integers(shape, s, *std::move(integers))
                      : linear_floats(shape, s, x, weight, bias);
  return record<LinearNode>(std::move(y), {x, weight, bias});
}

}  // namespace quantrain
