#include "quant/integer/quantized_add.hpp"

#include "framework/kernels/integer.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QuantizedAdd::QuantizedAdd(const std::string& name, Spec spec)
    : shape_(spec.shape), a_(std::move(spec.a)), b_(std::move(spec.b)) {
  check_activation(a_, name);
  check_activation(b_, name);
  requantize_to(a_, Activation::kNone);
}

void QuantizedAdd::requantize_to(const QParams& y, Activation activation) {
  check_activation(y, type());
  const auto scale_y = static_cast<double>(y.scale[0]);
  multipliers_ = make_add_multipliers(static_cast<double>(a_.scale[0]) / scale_y,
                                      static_cast<double>(b_.scale[0]) / scale_y);
  y_ = y;
  activation_ = activation;
}

void QuantizedAdd::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  const CodeClamp clamp = stored_clamp(y_, activation_);
  kernels::add_u8(n * shape_.elements(),
                  inputs[0],
                  stored_zero_point(a_),
                  inputs[1],
                  stored_zero_point(b_),
                  multipliers_,
                  stored_zero_point(y_),
                  clamp.lo,
                  clamp.hi,
                  static_cast<uint8_t*>(output));
}

Attributes QuantizedAdd::attributes() const {
  Attributes attributes{{"activation", std::string(to_string(activation_))},
                        {"shape", std::vector<int64_t>(shape_.begin(), shape_.end())}};
  append(attributes, "a", a_);
  append(attributes, "b", b_);
  append(attributes, "y", y_);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedAdd::load(const std::string& name,
                                                 const Attributes& attributes,
                                                 std::vector<LayerTensor> /*tensors*/) {
  auto layer = std::make_unique<QuantizedAdd>(name,
                                              Spec{.shape = Shape(attributes.integers("shape")),
                                                   .a = params_from(attributes, "a", name),
                                                   .b = params_from(attributes, "b", name)});
  layer->requantize_to(params_from(attributes, "y", name),
                       activation_from(attributes.string("activation"), name));
  return layer;
}

}  // namespace quantrain::quant
