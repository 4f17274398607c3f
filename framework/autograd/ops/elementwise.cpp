#include "framework/autograd/ops/elementwise.hpp"

#include <array>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

namespace quantrain {
namespace {

using Function = std::shared_ptr<const ElementwiseFunction>;

constexpr int64_t kGrain = 1 << 12;  // a call for each element

std::array<float, 256> to_floats(const integer::CodeValues& values) {
  std::array<float, 256> table{};
  for (size_t q = 0; q < values.size(); ++q) table[q] = static_cast<float>(values[q]);
  return table;
}

class ElementwiseNode : public Node {
 public:
  /// result: where backward_f32 reads it, else undefined.
  ElementwiseNode(Function function, Tensor result)
      : function_(std::move(function)), result_(std::move(result)) {}

  std::string_view type() const override { return function_->type; }
  QuantizationTraits traits() const override {
    return {.closes_range = true, .layer = function_->layer};
  }
  bool reads_input(size_t) const override { return !result_.defined(); }

  std::vector<Tensor> backward(Tensor grad_y) override {
    const Floats grad = grad_y.floats();
    const int64_t n = grad_y.elements();
    Tensor grad_x = Tensor::empty(grad_y.shape());
    float* const out = grad_x.mutable_data();
    if (result_.defined()) {
      const Floats result_floats = result_.floats();
      function_->backward_f32(n, result_floats, grad, out);
      return {grad_x};
    }
    if (const std::shared_ptr<const Codes> codes = activation_codes(input(0))) {
      const std::array<float, 256> slope =
          to_floats(integer::code_values(function_->derivative, codes->params));
      parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = grad.data()[i] * slope[codes->u8()[i]];
      });
      return {grad_x};
    }
    const Floats x = input(0).floats();
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double slope = function_->derivative(static_cast<double>(x.data()[i]));
        out[i] = static_cast<float>(static_cast<double>(grad.data()[i]) * slope);
      }
    });
    return {grad_x};
  }

 private:
  Function function_;
  Tensor result_;
};

/// The function of a tensor of codes, a lookup once the output's parameters are known.
/// docs/quantization.md (18)
class CodeFunction : public Accumulators {
 public:
  CodeFunction(Function function, const Samples& samples, std::shared_ptr<const Codes> x)
      : function_(std::move(function)),
        samples_(samples),
        x_(std::move(x)),
        values_(integer::code_values(function_->f, x_->params)) {}

  void to_float(float* y) const override {
    const std::array<float, 256> values = to_floats(values_);
    parallel_for(x_->bytes.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = values[x_->u8()[i]];
    });
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    const auto op = integer::QuantizedLookup::function(
        samples_.size, values_, x_->params, y, activation, function_->type);
    const uint8_t* const inputs[] = {x_->u8()};
    integer::Prepared(op).run(samples_.count, inputs, codes);
    if (mask != nullptr) write_gradient_mask(y, mask);
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  void write_gradient_mask(const QParams& y, uint8_t* mask) const {
    const std::array<float, 256> values = to_floats(values_);
    CodeFlags passes;
    for (size_t q = 0; q < passes.size(); ++q) {
      passes[q] =
          gradient_passes(values[q], y.scale[0], y.zero_point[0], y.type.qmin(), y.type.qmax());
    }
    write_mask(x_->bytes.size(), mask, [&](int64_t i) { return passes[x_->u8()[i]]; });
  }

  Function function_;
  Samples samples_;
  std::shared_ptr<const Codes> x_;
  integer::CodeValues values_;
};

Tensor of_floats(const ElementwiseFunction& function, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const Floats in = x.floats();
  float* const out = y.mutable_data();
  if (function.forward_f32 != nullptr) {
    function.forward_f32(x.elements(), in, out);
    return y;
  }
  parallel_for(x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = static_cast<float>(function.f(static_cast<double>(in.data()[i])));
  });
  return y;
}

}  // namespace

Tensor elementwise(Function function, const Tensor& x) {
  if (function == nullptr || function->type.empty() || !function->f || !function->derivative) {
    throw GraphError(function == nullptr ? "elementwise" : function->type,
                     "an elementwise function needs its type, f and derivative");
  }
  if (std::shared_ptr<const Codes> codes = activation_codes(x)) {
    auto waiting = std::make_shared<CodeFunction>(function, Samples(x.shape()), std::move(codes));
    return record<ElementwiseNode>(
        TensorAccess::from_accumulators(x.shape(), std::move(waiting)), {x}, function, Tensor());
  }
  Tensor y = of_floats(*function, x);
  const Tensor result = function->backward_f32 != nullptr ? y.detach() : Tensor();
  return record<ElementwiseNode>(std::move(y), {x}, std::move(function), result);
}

}  // namespace quantrain
