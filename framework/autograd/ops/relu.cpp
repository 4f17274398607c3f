#include "framework/autograd/ops/relu.hpp"

#include <algorithm>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

class ReluNode : public Node {
 public:
  ReluNode(Activation activation, std::shared_ptr<const PendingPass> pass)
      : activation_(activation), pass_(std::move(pass)) {}
  std::string_view type() const override {
    return activation_ == Activation::kRelu ? "relu" : "relu6";
  }
  QuantizationTraits traits() const override {
    return {.is_activation = true, .layer = activation_ == Activation::kRelu ? "ReLU" : "ReLU6"};
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    if (pass_ == nullptr) return {grad_y};
    return {masked(grad_y, pass_->complete_mask(type()))};
  }

 private:
  Activation activation_;
  std::shared_ptr<const PendingPass> pass_;  // null if the batch norm before it applies the mask
};

Tensor activate_floats(const Tensor& x, Activation activation, uint8_t* mask) {
  Tensor y = Tensor::empty(x.shape());
  const Floats x_floats = x.floats();
  kernels::relu_f32(x.elements(), x_floats, upper_bound(activation), y.mutable_data(), mask);
  return y;
}

// The result has the same parameters, so the activation is a clamp of codes.
Tensor activate_codes(const Tensor& x, const Codes& codes, Activation activation, uint8_t* mask) {
  const Samples samples(x.shape());
  const auto op =
      integer::QuantizedLookup::rescale(samples.size, codes.params, codes.params, activation);
  Buffer<uint8_t> y(x.elements());
  const uint8_t* const inputs[] = {codes.u8()};
  integer::Prepared(op).run(samples.count, inputs, y.data());
  if (mask != nullptr) {
    const float hi = upper_bound(activation);
    const int32_t zero = codes.stored_zero_point();
    write_mask(x.elements(), mask, [&](int64_t i) {
      const float real = dequantize(codes.u8()[i], codes.params.scale[0], zero);
      return real > 0.0f && real < hi;
    });
  }
  return computed_codes(
      x.shape(), std::move(y), codes.params, std::make_shared<const integer::Operation>(op));
}

// The result shares x's integers. If x already has an activation, the tighter of the two applies:
// relu and relu6, in either order, give relu6.
Tensor activate_accumulators(const Tensor& x, Activation activation, uint8_t* mask) {
  if (mask != nullptr)
    TensorAccess::accumulators(x)->activation_mask(x.elements(), activation, mask);
  return TensorAccess::with_activation(x, std::max(TensorAccess::activation(x), activation));
}

Tensor activate(const Tensor& x, Activation activation, bool may_take) {
  const bool takes = may_take && !keeps_values() && TensorAccess::can_take_floats(x);
  std::shared_ptr<PendingPass> pass = takes ? TensorAccess::pending(x) : nullptr;
  const bool joins = pass != nullptr && !pass->used && pass->activation == Activation::kNone;
  if (!joins) pass = std::make_shared<PendingPass>();
  if (needs_gradient({x})) pass->mask = Buffer<uint8_t>((x.elements() + 7) / 8);
  pass->activation = activation;
  if (takes) {
    Tensor y = TensorAccess::take_floats(x, pass);
    return record<ReluNode>(std::move(y), {x}, activation, joins ? nullptr : std::move(pass));
  }
  uint8_t* const mask = pass->mask.data();
  const std::shared_ptr<const Codes> codes = activation_codes(x);
  Tensor y;
  if (x.kind() == ValueKind::kAccumulators) {
    y = activate_accumulators(x, activation, mask);
  } else if (codes != nullptr) {
    y = activate_codes(x, *codes, activation, mask);
  } else {
    y = activate_floats(x, activation, mask);
  }
  pass->done = true;
  return record<ReluNode>(std::move(y), {x}, activation, std::move(pass));
}

}  // namespace

Tensor relu(const Tensor& x) { return activate(x, Activation::kRelu, false); }

Tensor relu6(const Tensor& x) { return activate(x, Activation::kRelu6, false); }

Tensor activate_last_use(const Tensor& x, Activation activation) {
  return activate(x, activation, true);
}

}  // namespace quantrain
