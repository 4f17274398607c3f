#include "framework/autograd/ops/relu.hpp"

#include <algorithm>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

class ReluNode : public Node {
 public:
  ReluNode(Activation activation, Buffer<uint8_t> mask)
      : activation_(activation), mask_(std::move(mask)) {}
  std::string_view type() const override { return to_string(activation_); }
  QuantizationTraits traits() const override {
    return {.is_activation = true, .layer = activation_ == Activation::kRelu ? "ReLU" : "ReLU6"};
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override { return {masked(grad_y, mask_)}; }

 private:
  Activation activation_;
  Buffer<uint8_t> mask_;
};

// A recording keeps the value of x, so the result does not take its memory.
Tensor activate_floats(const Tensor& x, Activation activation, uint8_t* mask) {
  const bool in_place = TensorAccess::is_sole(x) && !keeps_values();
  Tensor y = in_place ? TensorAccess::take_floats(x) : Tensor::empty(x.shape());
  const Floats from = in_place ? y.floats() : x.floats();
  kernels::relu_f32(y.elements(), from, upper_bound(activation), y.mutable_data(), mask);
  return y;
}

void write_mask_of_codes(const Codes& codes, Activation activation, uint8_t* mask) {
  const float hi = upper_bound(activation);
  const int32_t zero = codes.stored_zero_point();
  write_mask(codes.bytes.size(), mask, [&](int64_t i) {
    const float real = dequantize(codes.u8()[i], codes.params.scale[0], zero);
    return real > 0.0f && real < hi;
  });
}

// The result has the same parameters, so the activation is a clamp of codes.
Tensor activate_codes(const Tensor& x, const Codes& codes, Activation activation) {
  const Samples samples(x.shape());
  const auto op =
      integer::QuantizedLookup::rescale(samples.size, codes.params, codes.params, activation);
  Buffer<uint8_t> y(x.elements());
  const uint8_t* const inputs[] = {codes.u8()};
  integer::Prepared(op).run(samples.count, inputs, y.data());
  return computed_codes(
      x.shape(), std::move(y), codes.params, std::make_shared<const integer::Operation>(op));
}

// The result waits for its parameters, so the activation is a function of codes.
Tensor function_of_codes(const Shape& shape,
                         const std::shared_ptr<const Codes>& codes,
                         Activation activation) {
  const double hi = upper_bound(activation);
  std::vector<integer::CodeValues> values{integer::code_values(
      [hi](double real) { return std::min(std::max(real, 0.0), hi); }, codes->params)};
  return TensorAccess::from_waiting(
      shape,
      std::make_shared<CodeFunction>(to_string(activation), shape, codes, std::move(values)));
}

// The result shares x's integers. If x already has an activation, the tighter of the two applies:
// relu and relu6, in either order, give relu6.
Tensor activate_waiting(const Tensor& x, Activation activation, uint8_t* mask) {
  if (mask != nullptr) TensorAccess::waiting(x)->activation_mask(x.elements(), activation, mask);
  return TensorAccess::with_activation(x, std::max(TensorAccess::activation(x), activation));
}

enum class ResultOfCodes { kSameParams, kWaits };

Tensor apply(Tensor x, Activation activation, ResultOfCodes result) {
  Buffer<uint8_t> bits;
  if (needs_gradient({x})) bits = Buffer<uint8_t>((x.elements() + 7) / 8);
  uint8_t* const mask = bits.data();
  const std::shared_ptr<const Codes> codes = activation_codes(x);
  Tensor y;
  if (x.kind() == ValueKind::kWaiting) {
    y = activate_waiting(x, activation, mask);
  } else if (codes != nullptr) {
    y = result == ResultOfCodes::kWaits ? function_of_codes(x.shape(), codes, activation)
                                        : activate_codes(x, *codes, activation);
    if (mask != nullptr) write_mask_of_codes(*codes, activation, mask);
  } else {
    y = activate_floats(x, activation, mask);
  }
  return record<ReluNode>(std::move(y), {std::move(x)}, activation, std::move(bits));
}

}  // namespace

Tensor activate(Tensor x, Activation activation) {
  if (activation == Activation::kNone) return x;
  return apply(std::move(x), activation, ResultOfCodes::kSameParams);
}

Tensor activate_with_own_params(Tensor x, Activation activation) {
  if (activation == Activation::kNone) return x;
  return apply(std::move(x), activation, ResultOfCodes::kWaits);
}

Tensor relu(Tensor x) { return activate(std::move(x), Activation::kRelu); }

Tensor relu6(Tensor x) { return activate(std::move(x), Activation::kRelu6); }

}  // namespace quantrain
