#include "framework/autograd/ops/div.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

class DivNode : public Node {
 public:
  explicit DivNode(Tensor y) : y_(std::move(y)) {}
  std::string_view type() const override { return "div"; }
  QuantizationTraits traits() const override {
    const bool constant = may_be_constant(input(0).shape(), input(1).shape());
    return {.closes_range = true, .takes_constants = constant, .takes_data = false};
  }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(layer,
                     "this division has no integer form: ",
                     input(0).shape(),
                     " / ",
                     input(1).shape(),
                     "; the divisor must be a constant: one number, or one for each channel (the "
                     "last axis). If it depends on the input, use an Elementwise of a function "
                     "that is finite at 0, such as 1 / (v + 1), and the layer Mul");
  }
  bool reads_input(size_t i) const override { return i == 1; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Tensor quotient = broadcast_binary("div", kernels::div_f32, grad_y, input(1));
    return {needs_grad(0) ? reduce_to(quotient, input(0).shape()) : Tensor(),
            needs_grad(1) ? reduce_to(negated_product(quotient, y_), input(1).shape()) : Tensor()};
  }

 private:
  static Tensor negated_product(const Tensor& a, const Tensor& b) {
    Tensor y = Tensor::empty(a.shape());
    float* const out = y.mutable_data();
    const Floats a_floats = a.floats();
    const Floats b_floats = b.floats();
    kernels::mul_f32(y.elements(), a_floats, b_floats, out);
    kernels::affine_f32(y.elements(), out, -1.0f, 0.0f, out);
    return y;
  }

  Tensor y_;
};

}  // namespace

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor y = function_of_constants("div", a, b, [](double x, double c) { return x / c; });
  if (!y.defined()) y = broadcast_binary("div", kernels::div_f32, a, b);
  return record<DivNode>(y, {a, b}, y.detach());
}

}  // namespace quantrain
