#include "quant/integer/quantized_product.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "quant/analysis/overflow.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {

QuantizedProduct::QuantizedProduct(
    std::string name, int64_t outputs, int64_t length, QParams x, QuantizedWeights weights)
    : RequantizedLayer(std::move(name)),
      outputs_(outputs),
      x_(std::move(x)),
      weights_(std::move(weights)) {
  const std::string& where = this->name();
  check_activation(x_, where);
  const auto count = static_cast<int64_t>(weights_.codes.size());
  const auto scales = static_cast<int64_t>(weights_.scale.size());
  const auto biases = static_cast<int64_t>(weights_.bias.size());
  // By division: a product of extents from a file may wrap around.
  if (outputs < 1 || length < 1 || count % outputs != 0 || count / outputs != length) {
    throw ShapeError(where, count, " weights for ", outputs, " outputs of ", length, " each");
  }
  if ((scales != 1 && scales != outputs) || (biases != 0 && biases != outputs)) {
    throw ShapeError(
        where, scales, " weight scales and ", biases, " biases for ", outputs, " outputs");
  }
  for (const float scale : weights_.scale) {
    if (!(scale > 0.0f) || !std::isnormal(scale))
      throw QuantError(where, "weight scale is ", scale);
  }
  const int32_t zero_x = stored_zero_point(x_);
  for (int64_t o = 0; o < outputs; ++o) {
    const int32_t b = weights_.bias.empty() ? 0 : weights_.bias[static_cast<size_t>(o)];
    const int64_t bound =
        quant::accumulator_bound(length, weights_.codes.data() + o * length, b, zero_x);
    if (bound >= kAccumulatorLimit) {
      throw QuantError(where,
                       "accumulator of channel ",
                       o,
                       " could reach ",
                       bound,
                       ", the limit is ",
                       kAccumulatorLimit);
    }
    bound_ = std::max(bound_, bound);
  }
}

double QuantizedProduct::accumulator_scale() const {
  if (output_kind() != OutputKind::kAccumulators) return RequantizedLayer::accumulator_scale();
  if (weights_.scale.size() != 1) {
    throw QuantError(name(), "the output has ", weights_.scale.size(), " scales: logits need one");
  }
  return static_cast<double>(x_.scale[0]) * static_cast<double>(weights_.scale[0]);
}

void QuantizedProduct::set_output_scale(float scale_y) {
  std::vector<int32_t> m0;
  std::vector<int32_t> shift;
  for (int64_t o = 0; o < outputs_; ++o) {
    const float scale_w = weights_.scale[weights_.scale.size() == 1 ? 0 : static_cast<size_t>(o)];
    const Multiplier m = sum_multiplier(sum_scale(x_.scale[0], scale_w), scale_y);
    m0.push_back(m.m0);
    shift.push_back(m.shift);
  }
  m0_ = std::move(m0);
  shift_ = std::move(shift);
}

void QuantizedProduct::output_is_set() {
  const CodeClamp clamp = output_clamp();
  const kernels::RequantizeU8 requantize{
      m0_.data(), shift_.data(), output_zero_point(), clamp.lo, clamp.hi};
  params_ = kernels::ProductParams(packed_, stored_zero_point(x_), bias(), &requantize);
}

void QuantizedProduct::set_packed(kernels::PackedWeightsS8 packed) {
  packed_ = std::move(packed);
  params_ = kernels::ProductParams(packed_, stored_zero_point(x_), bias(), nullptr);
}

Attributes QuantizedProduct::product_attributes() const {
  Attributes attributes{{"weight_bits", int64_t{weights_.bits}}};
  append(attributes, "x", x_);
  attributes.add("requantize", int64_t{has_output_params()});
  append_output(attributes);
  return attributes;
}

void QuantizedProduct::load_product_output(const Attributes& attributes) {
  if (attributes.integer("requantize") != 0) load_output(attributes);
}

std::vector<LayerTensor> QuantizedProduct::tensors() const {
  const auto count = static_cast<int64_t>(weights_.codes.size());
  std::vector<LayerTensor> tensors{
      {"weight", Shape{outputs_, count / outputs_}, weights_.codes},
      {"weight_scale", Shape{static_cast<int64_t>(weights_.scale.size())}, weights_.scale}};
  if (!weights_.bias.empty()) tensors.push_back({"bias", Shape{outputs_}, weights_.bias});
  return tensors;
}

}  // namespace quantrain::quant
