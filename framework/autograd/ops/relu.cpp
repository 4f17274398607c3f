#include "framework/autograd/ops/relu.hpp"

#include <algorithm>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
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
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = grad_y.overwritable();
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

Tensor activate_floats(const Tensor& x, Activation activation, uint8_t* mask) {
  Tensor y = Tensor::empty(x.shape());
  kernels::relu_f32(x.elements(), x.floats(), upper_bound(activation), y.mutable_data(), mask);
  return y;
}

// Requantization to the same parameters: what is left of it is the clamp.
Tensor activate_codes(const Tensor& x, const Codes& codes, Activation activation, uint8_t* mask) {
  const StoredOutput stored(codes.params, activation);
  auto y = std::make_shared<Codes>();
  y->bytes = Buffer<uint8_t>(x.elements());
  y->params = codes.params;
  kernels::rescale_u8(x.elements(),
                      codes.u8(),
                      stored.zero_point,
                      make_multiplier(1.0),
                      stored.zero_point,
                      stored.lo,
                      stored.hi,
                      y->bytes.data());
  if (mask != nullptr) {
    const float hi = upper_bound(activation);
    write_mask(x.elements(), mask, [&](int64_t i) {
      const float real = dequantize(codes.u8()[i], codes.params.scale[0], stored.zero_point);
      return real > 0.0f && real < hi;
    });
  }
  return Tensor::from_codes(x.shape(), std::move(y));
}

// The integers are shared. Of two activations the tighter one holds: relu6 after relu, or before
// it, is relu6.
Tensor activate_accumulators(const Tensor& x, Activation activation, uint8_t* mask) {
  if (mask != nullptr) x.accumulators()->activation_mask(x.elements(), activation, mask);
  return x.with_activation(std::max(x.activation(), activation));
}

Tensor activate(const Tensor& x, Activation activation) {
  Buffer<uint8_t> mask;
  if (needs_gradient({x})) mask = Buffer<uint8_t>((x.elements() + 7) / 8);
  const std::shared_ptr<const Codes> codes = activation_codes(x);
  Tensor y = x.kind() == ValueKind::kAccumulators
                 ? activate_accumulators(x, activation, mask.data())
             : codes != nullptr ? activate_codes(x, *codes, activation, mask.data())
                                : activate_floats(x, activation, mask.data());
  return record<Relu>(std::move(y), {x}, activation, std::move(mask));
}

}  // namespace

Tensor relu(const Tensor& x) { return activate(x, Activation::kRelu); }

Tensor relu6(const Tensor& x) { return activate(x, Activation::kRelu6); }

}  // namespace quantrain
