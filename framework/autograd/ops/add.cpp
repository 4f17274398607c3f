#include "framework/autograd/ops/add.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

class AddNode : public Node {
 public:
  std::string_view type() const override { return "add"; }
  QuantizationTraits traits() const override {
    const bool same = input(0).shape() == input(1).shape();
    const bool constant = may_be_constant(input(0).shape(), input(1).shape());
    return {.closes_range = true,
            .takes_constants = constant,
            .takes_data = same,
            .layer = same ? "Add" : ""};
  }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(layer,
                     input(0).shape() == input(1).shape() ? "an addition of a constant"
                                                          : "an addition that broadcasts",
                     " has no integer form: ",
                     input(0).shape(),
                     " + ",
                     input(1).shape(),
                     "; a constant is one number, or one for each channel (the last axis). If both "
                     "operands depend on the input, they need the same shape");
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {needs_grad(0) ? reduce_to(grad_y, input(0).shape()) : Tensor(),
            needs_grad(1) ? reduce_to(grad_y, input(1).shape()) : Tensor()};
  }
};

/// The exact sum of two tensors of codes. requantize() rounds it once.   docs/quantization.md (11)
class CodeSum : public Accumulators {
 public:
  CodeSum(const Samples& samples, std::shared_ptr<const Codes> a, std::shared_ptr<const Codes> b)
      : samples_(samples), a_(std::move(a)), b_(std::move(b)) {}

  void to_float(float* y) const override {
    const int64_t n = a_->bytes.size();
    Buffer<float> b(n);
    kernels::dequantize_u8_f32(n, a_->u8(), a_->params.scale[0], a_->stored_zero_point(), y);
    kernels::dequantize_u8_f32(n, b_->u8(), b_->params.scale[0], b_->stored_zero_point(), b.data());
    kernels::add_f32(n, y, b.data(), y);
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    const auto op =
        integer::QuantizedAdd::make(samples_.size, a_->params, b_->params, y, activation);
    const uint8_t* const inputs[] = {a_->u8(), b_->u8()};
    integer::Prepared(op).run(samples_.count, inputs, codes, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  Samples samples_;
  std::shared_ptr<const Codes> a_;
  std::shared_ptr<const Codes> b_;
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  std::shared_ptr<const Codes> codes_a = activation_codes(a);
  std::shared_ptr<const Codes> codes_b = activation_codes(b);
  if (codes_a != nullptr && codes_b != nullptr && a.shape() == b.shape()) {
    auto sum =
        std::make_shared<CodeSum>(Samples(a.shape()), std::move(codes_a), std::move(codes_b));
    return record<AddNode>(TensorAccess::from_accumulators(a.shape(), std::move(sum)), {a, b});
  }
  Tensor y = function_of_constants("add", a, b, [](double x, double c) { return x + c; });
  if (!y.defined()) y = broadcast_binary("add", kernels::add_f32, a, b);
  return record<AddNode>(std::move(y), {a, b});
}

}  // namespace quantrain
