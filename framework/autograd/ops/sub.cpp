#include "framework/autograd/ops/sub.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

class SubNode : public Node {
 public:
  std::string_view type() const override { return "sub"; }
  QuantizationTraits traits() const override {
    const bool constant = may_be_constant(input(0).shape(), input(1).shape());
    return {.closes_range = true, .takes_constants = constant, .takes_data = false};
  }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(
        layer,
        "this subtraction has no integer form: ",
        input(0).shape(),
        " - ",
        input(1).shape(),
        "; a constant operand must be one number, or one for each channel (the last axis). If both "
        "operands depend on the input, multiply the second by the constant -1 in a "
        "layer of its own, and use the layer Add");
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {needs_grad(0) ? reduce_to(grad_y, input(0).shape()) : Tensor(),
            needs_grad(1) ? negated(reduce_to(grad_y, input(1).shape())) : Tensor()};
  }

 private:
  static Tensor negated(const Tensor& x) {
    Tensor y = Tensor::empty(x.shape());
    const Floats x_floats = x.floats();
    kernels::affine_f32(x.elements(), x_floats, -1.0f, 0.0f, y.mutable_data());
    return y;
  }
};

}  // namespace

Tensor sub(const Tensor& a, const Tensor& b) {
  Tensor y = function_of_constants("sub", a, b, [](double x, double c) { return x - c; });
  if (!y.defined()) y = broadcast_binary("sub", kernels::sub_f32, a, b);
  return record<SubNode>(std::move(y), {a, b});
}

}  // namespace quantrain
