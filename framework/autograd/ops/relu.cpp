#include "framework/autograd/ops/relu.hpp"

#include <algorithm>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/node.hpp"
#include "framework/kernels/elementwise.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {
namespace {

class Relu : public Node {
 public:
  Relu(Activation activation, Buffer<uint8_t> mask)
      : activation_(activation), mask_(std::move(mask)) {}
  std::string_view type() const override {
    return activation_ == Activation::kRelu ? "relu" : "relu6";
  }
  std::vector<Tensor> backward(const Tensor& grad_y) override {
    Tensor grad_x = Tensor::empty(grad_y.shape());
    kernels::mask_f32(grad_y.elements(), grad_y.floats(), mask_.data(), grad_x.mutable_data());
    return {grad_x};
  }

 private:
  Activation activation_;
  Buffer<uint8_t> mask_;  // bit i: the gradient of element i passes
};

float upper_bound(Activation activation) {
  return activation == Activation::kRelu6 ? 6.0f : __builtin_inff();
}

Tensor activate(const Tensor& x, Activation activation) {
  Buffer<uint8_t> mask;
  if (needs_gradient({x})) mask = Buffer<uint8_t>((x.elements() + 7) / 8);
  Tensor y = Tensor::empty(x.shape());
  kernels::relu_f32(
      x.elements(), x.floats(), upper_bound(activation), y.mutable_data(), mask.data());
  return record<Relu>(std::move(y), {x}, activation, std::move(mask));
}

}  // namespace

Tensor relu(const Tensor& x) { return activate(x, Activation::kRelu); }

Tensor relu6(const Tensor& x) { return activate(x, Activation::kRelu6); }

}  // namespace quantrain
