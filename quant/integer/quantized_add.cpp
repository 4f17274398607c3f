#include "quant/integer/quantized_add.hpp"

#include "framework/kernels/integer.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QuantizedAdd::QuantizedAdd(const std::string& name, Spec spec)
    : RequantizedLayer(name), shape_(spec.shape), a_(std::move(spec.a)), b_(std::move(spec.b)) {
  check_activation(a_, name);
  check_activation(b_, name);
  requantize_to(a_, Activation::kNone);
}

void QuantizedAdd::set_output_scale(float scale_y) {
  multipliers_ = add_multipliers(a_.scale[0], b_.scale[0], scale_y);
}

void QuantizedAdd::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  const CodeClamp clamp = output_clamp();
  kernels::add_u8(n * shape_.elements(),
                  inputs[0],
                  stored_zero_point(a_),
                  inputs[1],
                  stored_zero_point(b_),
                  multipliers_,
                  output_zero_point(),
                  clamp.lo,
                  clamp.hi,
                  static_cast<uint8_t*>(output));
}

Attributes QuantizedAdd::attributes() const {
  Attributes attributes{{"shape", std::vector<int64_t>(shape_.begin(), shape_.end())}};
  append(attributes, "a", a_);
  append(attributes, "b", b_);
  append_output(attributes);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedAdd::load(const std::string& name,
                                                 const Attributes& attributes,
                                                 std::vector<LayerTensor> /*tensors*/) {
  auto layer = std::make_unique<QuantizedAdd>(name,
                                              Spec{.shape = Shape(attributes.integers("shape")),
                                                   .a = params_from(attributes, "a", name),
                                                   .b = params_from(attributes, "b", name)});
  layer->load_output(attributes);
  return layer;
}

}  // namespace quantrain::quant
