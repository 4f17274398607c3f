#include "quant/integer/quantized_conv2d.hpp"

#include "framework/core/error.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QuantizedConv2d::QuantizedConv2d(const std::string& name, Spec spec)
    : QuantizedProduct(name,
                       spec.shape.o,
                       (check_shape(spec.shape, name), spec.shape.reduction()),
                       std::move(spec.x),
                       std::move(spec.weights)),
      shape_(spec.shape) {
  set_packed(kernels::PackedWeightsS8(shape_, weights().codes.data()));
}

std::string_view QuantizedConv2d::kernel() const {
  return output_kind() == OutputKind::kCodes ? "conv2d_u8s8_u8" : "conv2d_u8s8_s32";
}

void QuantizedConv2d::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  kernels::Conv2dShape shape = shape_;
  shape.n = n;
  if (output_kind() == OutputKind::kCodes) {
    kernels::conv2d_u8s8_u8(
        shape, inputs[0], packed(), product_params(), static_cast<uint8_t*>(output));
  } else {
    kernels::conv2d_u8s8_s32(
        shape, inputs[0], packed(), product_params(), static_cast<int32_t*>(output));
  }
}

Attributes QuantizedConv2d::attributes() const {
  Attributes attributes = product_attributes();
  append(attributes, shape_);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedConv2d::load(const std::string& name,
                                                    const Attributes& attributes,
                                                    std::vector<LayerTensor> tensors) {
  auto layer = std::make_unique<QuantizedConv2d>(
      name,
      Spec{.shape = shape_from(attributes, name),
           .weights = load_weights(name, attributes, std::move(tensors)),
           .x = params_from(attributes, "x", name)});
  layer->load_product_output(attributes);
  return layer;
}

}  // namespace quantrain::quant
