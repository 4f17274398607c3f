#include "framework/autograd/ops/max_pool2d.hpp"

#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/pooling.hpp"

namespace quantrain {
namespace {

class MaxPoolNode : public Node {
 public:
  MaxPoolNode(const WindowOperation& operation,
              const kernels::Conv2dShape& shape,
              Buffer<uint16_t> position)
      : operation_(operation), shape_(shape), position_(std::move(position)) {}
  std::string_view type() const override { return operation_.type; }
  Attributes attributes() const override { return operation_.attributes(shape_); }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    const Floats grad_y_floats = grad_y.floats();
    kernels::max_pool2d_backward_f32(
        shape_, grad_y_floats, position_.data(), grad_x.mutable_data());
    return {grad_x};
  }

 private:
  WindowOperation operation_;
  kernels::Conv2dShape shape_;
  Buffer<uint16_t> position_;  // of the largest element in each window
};

}  // namespace

Tensor max_pool(const WindowOperation& operation,
                const kernels::Conv2dShape& s,
                const Shape& shape,
                const Tensor& x) {
  Buffer<uint16_t> position;
  if (needs_gradient({x})) {
    if (s.kh * s.kw > kernels::kLargestPoolWindow) {
      throw ShapeError(operation.type,
                       "a window of ",
                       s.kh * s.kw,
                       " elements is too large for a gradient: at most ",
                       kernels::kLargestPoolWindow);
    }
    position = Buffer<uint16_t>(shape.elements());
  }
  Tensor y;
  if (const std::shared_ptr<const Codes> codes = activation_codes(x)) {
    const integer::QuantizedMaxPool2d op{integer::with_batch(s, 1)};
    Buffer<uint8_t> largest(shape.elements());
    const uint8_t* const inputs[] = {codes->u8()};
    integer::Prepared(op).run(s.n, inputs, largest.data(), position.data());
    y = computed_codes(
        shape, std::move(largest), codes->params, std::make_shared<const integer::Operation>(op));
  } else {
    y = Tensor::empty(shape);
    const Floats x_floats = x.floats();
    kernels::max_pool2d_f32(s, x_floats, y.mutable_data(), position.data());
  }
  return record<MaxPoolNode>(std::move(y), {x}, operation, s, std::move(position));
}

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  refuse_count_include_pad("max_pool2d", options.count_include_pad);
  const kernels::Conv2dShape s = pool2d_shape("max_pool2d", x.shape(), options);
  return max_pool({"max_pool2d", "MaxPool2d", pool2d_attributes}, s, {s.n, s.oh(), s.ow(), s.c}, x);
}

Tensor global_max_pool2d(const Tensor& x) {
  if (x.rank() != 4 || x.dim(1) < 1 || x.dim(2) < 1)
    throw ShapeError(
        "global_max_pool2d", "x is not [N, H, W, C] with H and W of at least 1: ", x.shape());
  return max_pool2d(x, {.kernel = {x.dim(1), x.dim(2)}});
}

}  // namespace quantrain
