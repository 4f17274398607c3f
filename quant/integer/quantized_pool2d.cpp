#include "quant/integer/quantized_pool2d.hpp"

#include <limits>

#include "framework/core/error.hpp"
#include "quant/integer/params_attributes.hpp"

namespace quantrain::quant {
namespace {

/// 255 times as much stays in 32 bits.
constexpr int64_t kLargestWindow = std::numeric_limits<int32_t>::max() / 255;

kernels::Conv2dShape checked(kernels::Conv2dShape shape,
                             const QParams& x,
                             const std::string& name) {
  check_activation(x, name);
  check_shape(shape, name);
  if (shape.o != shape.c)
    throw ShapeError(name, "a pool of ", shape.c, " channels gives ", shape.o);
  if (shape.pad_h >= shape.kh || shape.pad_w >= shape.kw) {
    throw ShapeError(
        name, "padding [", shape.pad_h, ", ", shape.pad_w, "] leaves windows without an element");
  }
  shape.n = 1;
  return shape;
}

kernels::Conv2dShape of_batch(kernels::Conv2dShape shape, int64_t n) {
  shape.n = n;
  return shape;
}

}  // namespace

QuantizedMaxPool2d::QuantizedMaxPool2d(const std::string& name, Spec spec)
    : IntegerLayer(name), shape_(checked(spec.shape, spec.x, name)), x_(std::move(spec.x)) {}

void QuantizedMaxPool2d::requantize_to(const QParams& y, Activation activation) {
  if (!(y == x_) || activation != Activation::kNone) {
    throw QuantError(name(), "a max pool passes its parameters through, it cannot take ", y);
  }
}

void QuantizedMaxPool2d::run(int64_t n,
                             std::span<const uint8_t* const> inputs,
                             void* output) const {
  kernels::max_pool2d_u8(of_batch(shape_, n), inputs[0], static_cast<uint8_t*>(output));
}

Attributes QuantizedMaxPool2d::attributes() const {
  Attributes attributes;
  append(attributes, shape_);
  append(attributes, "x", x_);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedMaxPool2d::load(const std::string& name,
                                                       const Attributes& attributes,
                                                       std::vector<LayerTensor> /*tensors*/) {
  return std::make_unique<QuantizedMaxPool2d>(
      name, Spec{.shape = shape_from(attributes, name), .x = params_from(attributes, "x", name)});
}

QuantizedAvgPool2d::QuantizedAvgPool2d(const std::string& name, Spec spec)
    : RequantizedLayer(name), shape_(checked(spec.shape, spec.x, name)), x_(std::move(spec.x)) {
  if (shape_.kh * shape_.kw > kLargestWindow) {
    throw QuantError(name,
                     "the sum over a window of ",
                     shape_.kh * shape_.kw,
                     " elements could overflow: at most ",
                     kLargestWindow);
  }
  requantize_to(x_, Activation::kNone);
}

void QuantizedAvgPool2d::set_output_scale(float scale_y) {
  multipliers_ = mean_multipliers(x_.scale[0], shape_.kh * shape_.kw, scale_y);
}

void QuantizedAvgPool2d::run(int64_t n,
                             std::span<const uint8_t* const> inputs,
                             void* output) const {
  const CodeClamp clamp = output_clamp();
  kernels::avg_pool2d_u8(of_batch(shape_, n),
                         inputs[0],
                         stored_zero_point(x_),
                         multipliers_.data(),
                         output_zero_point(),
                         clamp.lo,
                         clamp.hi,
                         static_cast<uint8_t*>(output));
}

Attributes QuantizedAvgPool2d::attributes() const {
  Attributes attributes;
  append(attributes, shape_);
  append(attributes, "x", x_);
  append_output(attributes);
  return attributes;
}

std::unique_ptr<IntegerLayer> QuantizedAvgPool2d::load(const std::string& name,
                                                       const Attributes& attributes,
                                                       std::vector<LayerTensor> /*tensors*/) {
  auto layer = std::make_unique<QuantizedAvgPool2d>(
      name, Spec{.shape = shape_from(attributes, name), .x = params_from(attributes, "x", name)});
  layer->load_output(attributes);
  return layer;
}

}  // namespace quantrain::quant
