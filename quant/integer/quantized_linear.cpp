#include "quant/integer/quantized_linear.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QuantizedLinear::QuantizedLinear(const std::string& name, Spec spec)
    : QuantizedProduct(
          name, spec.outputs, spec.input.back(), std::move(spec.x), std::move(spec.weights)),
      input_(spec.input),
      outputs_(spec.outputs) {
  set_packed(kernels::PackedWeightsS8(outputs_, input_.back(), weights().codes.data()));
}

std::string_view QuantizedLinear::kernel() const {
  return output_kind() == OutputKind::kCodes ? "gemm_u8s8_u8" : "gemm_u8s8_s32";
}

Shape QuantizedLinear::output_shape() const {
  std::vector<int64_t> extents(input_.begin(), input_.end());
  extents.back() = outputs_;
  return Shape(extents);
}

void QuantizedLinear::run(int64_t n, std::span<const uint8_t* const> inputs, void* output) const {
  const int64_t k = input_.back();
  const int64_t rows = n * input_.elements() / k;
  if (output_kind() == OutputKind::kCodes) {
    kernels::gemm_u8s8_u8(
        rows, k, inputs[0], packed(), product_params(), static_cast<uint8_t*>(output));
  } else {
    kernels::gemm_u8s8_s32(
        rows, k, inputs[0], packed(), product_params(), static_cast<int32_t*>(output));
  }
}

Attributes QuantizedLinear::attributes() const {
  Attributes attributes = product_attributes();
  attributes.add("input", std::vector<int64_t>(input_.begin(), input_.end()));
  attributes.add("outputs", outputs_);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedLinear::load(const std::string& name,
                                                    const Attributes& attributes,
                                                    std::vector<LayerTensor> tensors) {
  auto layer = std::make_unique<QuantizedLinear>(
      name,
      Spec{.input = Shape(attributes.integers("input")),
           .outputs = attributes.integer("outputs"),
           .weights = load_weights(name, attributes, std::move(tensors)),
           .x = params_from(attributes, "x", name)});
  layer->load_product_output(attributes);
  return layer;
}

}  // namespace quantrain::quant
