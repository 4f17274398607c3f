#include "framework/autograd/ops/add.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

bool of_one_shape(const std::vector<Tensor>& x) {
  return std::all_of(
      x.begin(), x.end(), [&](const Tensor& operand) { return operand.shape() == x[0].shape(); });
}

class AddNode : public Node {
 public:
  std::string_view type() const override { return "add"; }
  QuantizationTraits traits() const override {
    const bool same = of_one_shape(inputs());
    const bool constant =
        inputs().size() == 2 && may_be_constant(input(0).shape(), input(1).shape());
    return {.closes_range = true,
            .takes_constants = constant,
            .takes_data = same,
            .layer = same ? "Add" : ""};
  }
  void refuse_integers(const std::string& layer) const override {
    TextStream shapes;
    for (const Tensor& x : inputs()) shapes << (shapes.tellp() == 0 ? "" : " + ") << x.shape();
    throw GraphError(
        layer,
        of_one_shape(inputs()) ? "this addition of a constant" : "this addition that broadcasts",
        " has no integer form: ",
        shapes.str(),
        inputs().size() == 2 ? "; "
                             : "; add the constant to one operand first, in a separate layer; ",
        "a constant operand must be one number, or one for each channel (the last axis). Operands "
        "that depend "
        "on the input need the same shape");
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    std::vector<Tensor> grads(inputs().size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (needs_grad(i)) grads[i] = reduce_to(grad_y, input(i).shape());
    }
    return grads;
  }
};

/// The exact sum of tensors of codes. requantize() rounds it once.   docs/quantization.md (11)
class CodeSum : public Accumulators {
 public:
  CodeSum(const Samples& samples, std::vector<std::shared_ptr<const Codes>> operands)
      : samples_(samples), operands_(std::move(operands)) {}

  void to_float(float* y) const override {
    const int64_t n = operands_[0]->bytes.size();
    Buffer<float> next(n);
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Codes& x = *operands_[i];
      float* const to = i == 0 ? y : next.data();
      kernels::dequantize_u8_f32(n, x.u8(), x.params.scale[0], x.stored_zero_point(), to);
      if (i > 0) kernels::add_f32(n, y, to, y);
    }
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    std::vector<QParams> params;
    std::vector<const uint8_t*> inputs;
    for (const auto& operand : operands_) {
      params.push_back(operand->params);
      inputs.push_back(operand->u8());
    }
    const auto op = integer::QuantizedAdd::make(samples_.size, params, y, activation);
    integer::Prepared(op).run(samples_.count, inputs, codes, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  Samples samples_;
  std::vector<std::shared_ptr<const Codes>> operands_;
};

/// Returns an undefined tensor unless every operand holds activation codes of the same shape.
Tensor add_codes(const std::vector<Tensor>& x) {
  if (!of_one_shape(x)) return Tensor();
  std::vector<std::shared_ptr<const Codes>> operands;
  for (const Tensor& operand : x) {
    operands.push_back(activation_codes(operand));
    if (operands.back() == nullptr) return Tensor();
  }
  const Shape& shape = x[0].shape();
  return TensorAccess::from_accumulators(
      shape, std::make_shared<CodeSum>(Samples(shape), std::move(operands)));
}

Tensor add_floats(const std::vector<Tensor>& x) {
  Shape shape = x[0].shape();
  for (const Tensor& operand : x) shape = broadcast_shape("add", shape, operand.shape());
  Tensor y = Tensor::empty(shape);
  float* const sum = y.mutable_data();
  const Floats first = broadcast_to(x[0], shape).floats();
  for (size_t i = 1; i < x.size(); ++i) {
    const Floats next = broadcast_to(x[i], shape).floats();
    kernels::add_f32(y.elements(), i == 1 ? first.data() : sum, next, sum);
  }
  return y;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return add(std::vector<Tensor>{a, b}); }

Tensor add(const std::vector<Tensor>& x) {
  if (x.empty()) throw ShapeError("add", "there is no operand");
  if (x.size() == 1) return x[0];
  Tensor y = add_codes(x);
  if (!y.defined() && x.size() == 2)
    y = function_of_constants("add", x[0], x[1], [](double v, double c) { return v + c; });
  if (!y.defined()) y = add_floats(x);
  return record<AddNode>(std::move(y), x);
}

}  // namespace quantrain
