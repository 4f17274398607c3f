#include "quant/integer/quantized_rescale.hpp"

#include <cstring>

#include "framework/core/error.hpp"
#include "framework/kernels/integer.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QuantizedRescale::QuantizedRescale(const std::string& name, Spec spec)
    : RequantizedLayer(name), shape_(spec.shape), x_(std::move(spec.x)) {
  check_activation(x_, name);
  requantize_to(x_, Activation::kNone);
}

void QuantizedRescale::set_output_scale(float scale_y) {
  multiplier_ = rescale_multiplier(x_.scale[0], scale_y);
}

void QuantizedRescale::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  const CodeClamp clamp = output_clamp();
  kernels::rescale_u8(n * shape_.elements(),
                      inputs[0],
                      stored_zero_point(x_),
                      multiplier_,
                      output_zero_point(),
                      clamp.lo,
                      clamp.hi,
                      static_cast<uint8_t*>(output));
}

Attributes QuantizedRescale::attributes() const {
  Attributes attributes{{"shape", std::vector<int64_t>(shape_.begin(), shape_.end())}};
  append(attributes, "x", x_);
  append_output(attributes);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedRescale::load(const std::string& name,
                                                     const Attributes& attributes,
                                                     std::vector<LayerTensor> /*tensors*/) {
  auto layer = std::make_unique<QuantizedRescale>(
      name,
      Spec{.shape = Shape(attributes.integers("shape")), .x = params_from(attributes, "x", name)});
  layer->load_output(attributes);
  return layer;
}

QuantizedFlatten::QuantizedFlatten(const std::string& name, Spec spec)
    : IntegerLayer(name), input_(spec.input), output_(spec.output), x_(std::move(spec.x)) {
  check_activation(x_, name);
  if (input_.elements() != output_.elements()) {
    throw ShapeError(name, "input ", input_, " has not as many elements as output ", output_);
  }
}

void QuantizedFlatten::requantize_to(const QParams& y, Activation activation) {
  if (!(y == x_) || activation != Activation::kNone) {
    throw QuantError(name(), "a flatten passes its parameters through, it cannot take ", y);
  }
}

void QuantizedFlatten::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  if (n > 0) std::memcpy(output, inputs[0], static_cast<size_t>(n * input_.elements()));
}

Attributes QuantizedFlatten::attributes() const {
  Attributes attributes{{"input", std::vector<int64_t>(input_.begin(), input_.end())},
                        {"output", std::vector<int64_t>(output_.begin(), output_.end())}};
  append(attributes, "x", x_);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedFlatten::load(const std::string& name,
                                                     const Attributes& attributes,
                                                     std::vector<LayerTensor> /*tensors*/) {
  return std::make_unique<QuantizedFlatten>(name,
                                            Spec{.input = Shape(attributes.integers("input")),
                                                 .output = Shape(attributes.integers("output")),
                                                 .x = params_from(attributes, "x", name)});
}

}  // namespace quantrain::quant
