#include "framework/autograd/ops/conv2d.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/integer_product.hpp"
#include "framework/autograd/ops/pool2d.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/conv.hpp"

namespace quantrain {
namespace {

class Conv2dNode : public Node {
 public:
  Conv2dNode(const kernels::Conv2dShape& shape, const Conv2dOptions& options)
      : shape_(shape), options_(options) {}
  std::string_view type() const override { return "conv2d"; }
  Attributes attributes() const override {
    return {{"stride", std::vector<int64_t>{options_.stride.h, options_.stride.w}},
            {"padding", std::vector<int64_t>{options_.padding.h, options_.padding.w}},
            {"groups", options_.groups}};
  }
  QuantizationTraits traits() const override {
    return {.closes_range = true, .weight = 1, .folds_batch_norm = true, .layer = "Conv2d"};
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
  kernels::Conv2dShape shape_;
  Conv2dOptions options_;
};

Tensor multiply_floats(const kernels::Conv2dShape& s,
                       const Tensor& x,
                       const Tensor& weight,
                       const Tensor& bias) {
  Tensor y = Tensor::empty({s.n, s.oh(), s.ow(), s.o});
  kernels::EpilogueF32 epilogue;
  if (bias.defined()) epilogue.bias = bias.data();
  const Floats x_floats = x.floats();
  const Floats weight_floats = weight.floats();
  kernels::conv2d_f32(s, x_floats, weight_floats, y.mutable_data(), epilogue);
  return y;
}

}  // namespace

kernels::Conv2dShape conv2d_shape(const Shape& x,
                                  const Shape& weight,
                                  const Conv2dOptions& options) {
  const int64_t groups = options.groups;
  if (x.rank() != 4 || weight.rank() != 4) {
    throw ShapeError("conv2d",
                     "x is not [N, H, W, C] or weight not [O, KH, KW, C / groups]: x ",
                     x,
                     ", weight ",
                     weight);
  }
  if (*std::min_element(weight.begin(), weight.end()) < 1) {
    throw ShapeError("conv2d", "weight has no elements: ", weight);
  }
  if (groups < 1 || x[3] % groups != 0 || x[3] / groups != weight[3] || weight[0] % groups != 0) {
    throw ShapeError("conv2d",
                     "channels do not fit ",
                     groups,
                     " groups: x [N, H, W, C] ",
                     x,
                     ", weight [O, KH, KW, C / groups] ",
                     weight);
  }
  kernels::Conv2dShape s =
      image_shape("conv2d", x, {{weight[1], weight[2]}, options.stride, options.padding});
  s.o = weight[0];
  s.groups = groups;
  return s;
}

Tensor conv2d(const Tensor& x,
              const Tensor& weight,
              const Tensor& bias,
              const Conv2dOptions& options) {
  const kernels::Conv2dShape s = conv2d_shape(x.shape(), weight.shape(), options);
  if (bias.defined() && !(bias.shape() == Shape{s.o})) {
    throw ShapeError("conv2d",
                     "bias ",
                     bias.shape(),
                     " is not [O] of weight [O, KH, KW, C / groups] ",
                     weight.shape());
  }
  std::optional<IntegerProduct> integers =
      integer_product("conv2d", x, weight, bias, s.reduction());
  const integer::QuantizedConv2d operation{.shape = integer::with_batch(s, 1), .product = {}};
  Tensor y = integers ? accumulate(operation, *std::move(integers), s.n, {s.n, s.oh(), s.ow(), s.o})
                      : multiply_floats(s, x, weight, bias);
  return record<Conv2dNode>(std::move(y), {x, weight, bias}, s, options);
}

}  // namespace quantrain
