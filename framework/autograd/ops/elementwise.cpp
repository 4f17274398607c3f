#include "framework/autograd/ops/elementwise.hpp"

#include <array>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

using Function = std::shared_ptr<const ElementwiseFunction>;

class ElementwiseNode : public Node {
 public:
  /// result: y if backward_f32 reads it, else undefined.
  ElementwiseNode(Function function, Tensor result)
      : function_(std::move(function)), result_(std::move(result)) {}

  std::string_view type() const override { return function_->type; }
  Attributes attributes() const override {
    Attributes all;
    for (const auto& [name, value] : function_->attributes) all.add(name, value);
    return all;
  }
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
      parallel_for(n, kernels::kFunctionGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = grad.data()[i] * slope[codes->u8()[i]];
      });
      return {grad_x};
    }
    const Floats x = input(0).floats();
    parallel_for(n, kernels::kFunctionGrain, [&](int64_t begin, int64_t end) {
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

Tensor of_floats(const ElementwiseFunction& function, const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const Floats in = x.floats();
  float* const out = y.mutable_data();
  if (function.forward_f32 != nullptr) {
    function.forward_f32(x.elements(), in, out);
    return y;
  }
  parallel_for(x.elements(), kernels::kFunctionGrain, [&](int64_t begin, int64_t end) {
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
    std::vector<integer::CodeValues> values{integer::code_values(function->f, codes->params)};
    auto waiting = std::make_shared<CodeFunction>(
        function->type, x.shape(), std::move(codes), std::move(values));
    return record<ElementwiseNode>(
        TensorAccess::from_waiting(x.shape(), std::move(waiting)), {x}, function, Tensor());
  }
  Tensor y = of_floats(*function, x);
  const Tensor result = function->backward_f32 != nullptr ? y.detach() : Tensor();
  return record<ElementwiseNode>(std::move(y), {x}, std::move(function), result);
}

}  // namespace quantrain
