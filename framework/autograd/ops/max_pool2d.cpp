#include "framework/autograd/ops/max_pool2d.hpp"

#include "framework/kernels/elementwise.hpp"

namespace quantrain {
namespace {

class MaxPool2d : public Node {
 public:
  MaxPool2d(const kernels::Conv2dShape& shape, Buffer<int32_t> index)
      : shape_(shape), index_(std::move(index)) {}
  std::string_view type() const override { return "max_pool2d"; }
  Attributes attributes() const override { return pool2d_attributes(shape_); }
  std::vector<Tensor> backward(const Tensor& grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    kernels::max_pool2d_backward_f32(shape_, grad_y.floats(), index_.data(), grad_x.mutable_data());
    return {grad_x};
  }

 private:
  kernels::Conv2dShape shape_;
  Buffer<int32_t> index_;  // of the element that won, in x
};

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const kernels::Conv2dShape s = pool2d_shape("max_pool2d", x.shape(), options);
  Tensor y = Tensor::empty({s.n, s.oh(), s.ow(), s.c});
  Buffer<int32_t> index;
  if (needs_gradient({x})) index = Buffer<int32_t>(y.elements());
  kernels::max_pool2d_f32(s, x.floats(), y.mutable_data(), index.data());
  return record<MaxPool2d>(std::move(y), {x}, s, std::move(index));
}

}  // namespace quantrain
