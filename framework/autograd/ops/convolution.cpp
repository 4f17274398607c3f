#include "framework/autograd/ops/convolution.hpp"

#include <algorithm>

#include "framework/autograd/ops/integer_product.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/conv.hpp"

namespace quantrain {
namespace {

class ConvolutionNode : public Node {
 public:
  ConvolutionNode(const WindowOperation& operation, const kernels::Conv2dShape& shape)
      : operation_(operation), shape_(shape) {}
  std::string_view type() const override { return operation_.type; }
  Attributes attributes() const override { return operation_.attributes(shape_); }
  QuantizationTraits traits() const override {
    return {.closes_range = true, .weight = 1, .folds_batch_norm = true, .layer = operation_.layer};
  }
  bool reads_input(size_t i) const override { return i < 2 && needs_grad(1 - i); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Floats grad = grad_y.floats();
    std::vector<Tensor> grads(3);
    if (needs_grad(0)) {
      grads[0] = Tensor::empty(input(0).shape());
      const Floats weight_floats = input(1).floats();
      kernels::conv2d_backward_data_f32(shape_, grad, weight_floats, grads[0].mutable_data());
    }
    if (needs_grad(1)) {
      grads[1] = Tensor::empty(input(1).shape());
      const Tensor& x = input(0);
      float* const out = grads[1].mutable_data();
      if (x.kind() == ValueKind::kCodes && !TensorAccess::code_params(x).per_channel()) {
        kernels::conv2d_backward_weights_f32(shape_, x.codes()->view(), grad, out);
      } else {
        const Floats x_floats = x.floats();
        kernels::conv2d_backward_weights_f32(shape_, x_floats, grad, out);
      }
    }
    if (needs_grad(2)) {
      grads[2] = Tensor::empty({shape_.o});
      const int64_t pixels = shape_.n * shape_.oh() * shape_.ow();
      kernels::sum_rows_f32(pixels, shape_.o, grad, grads[2].mutable_data());
    }
    return grads;
  }

 private:
  WindowOperation operation_;
  kernels::Conv2dShape shape_;
};

Tensor convolve_floats(const kernels::Conv2dShape& s,
                       const Shape& shape,
                       const Tensor& x,
                       const Tensor& weight,
                       const Tensor& bias) {
  Tensor y = Tensor::empty(shape);
  kernels::EpilogueF32 epilogue;
  if (bias.defined()) epilogue.bias = bias.data();
  const Floats x_floats = x.floats();
  const Floats weight_floats = weight.floats();
  kernels::conv2d_f32(s, x_floats, weight_floats, y.mutable_data(), epilogue);
  return y;
}

}  // namespace

void check_channels(std::string_view type,
                    const ConvolutionAxes& axes,
                    const Shape& x,
                    const Shape& weight,
                    int64_t groups) {
  if (x.rank() != axes.rank || weight.rank() != axes.rank) {
    throw ShapeError(
        type, "x is not ", axes.x, " or weight not ", axes.weight, ": x ", x, ", weight ", weight);
  }
  if (*std::min_element(weight.begin(), weight.end()) < 1)
    throw ShapeError(type, "weight has no elements: ", weight);
  if (groups < 1 || x.back() % groups != 0 || x.back() / groups != weight.back() ||
      weight[0] % groups != 0) {
    throw ShapeError(type,
                     "channels do not fit ",
                     groups,
                     " groups: x ",
                     axes.x,
                     " ",
                     x,
                     ", weight ",
                     axes.weight,
                     " ",
                     weight);
  }
}

Tensor convolve(const WindowOperation& operation,
                const kernels::Conv2dShape& s,
                const Shape& shape,
                const Tensor& x,
                const Tensor& weight,
                const Tensor& bias) {
  if (bias.defined() && !(bias.shape() == Shape{s.o})) {
    throw ShapeError(
        operation.type, "bias ", bias.shape(), " is not [O] of weight [O, ...] ", weight.shape());
  }
  std::optional<IntegerProduct> integers =
      integer_product(operation.type, x, weight, bias, s.reduction());
  const integer::QuantizedConv2d sums{.shape = integer::with_batch(s, 1), .product = {}};
  Tensor y = integers ? accumulate(sums, *std::move(integers), s.n, shape)
                      : convolve_floats(s, shape, x, weight, bias);
  return record<ConvolutionNode>(std::move(y), {x, weight, bias}, operation, s);
}

}  // namespace quantrain
