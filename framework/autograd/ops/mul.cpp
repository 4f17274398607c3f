#include "framework/autograd/ops/mul.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

class MulNode : public Node {
 public:
  std::string_view type() const override { return "mul"; }
  QuantizationTraits traits() const override {
    const bool constant = may_be_constant(input(0).shape(), input(1).shape());
    return {.closes_range = constant, .takes_constants = constant};
  }
  bool reads_input(size_t i) const override { return i < 2 && needs_grad(1 - i); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {needs_grad(0) ? product(grad_y, input(1), input(0).shape()) : Tensor(),
            needs_grad(1) ? product(grad_y, input(0), input(1).shape()) : Tensor()};
  }

 private:
  static Tensor product(const Tensor& grad_y, const Tensor& other, const Shape& shape) {
    return reduce_to(broadcast_binary("mul", kernels::mul_f32, grad_y, other), shape);
  }
};

}  // namespace

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor y = function_of_constants("mul", a, b, [](double x, double c) { return x * c; });
  if (!y.defined()) y = broadcast_binary("mul", kernels::mul_f32, a, b);
  return record<MulNode>(std::move(y), {a, b});
}

}  // namespace quantrain
