#include "quant/quantized_tensor.hpp"

#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::quant {
namespace {

constexpr const char* kWhere = "quantize";

void check_type(const QType& type) {
  validate(type, kWhere);
  if (type.bits > kMostBits)
    throw QuantError(kWhere, "bits must be ", kLeastBits, " to ", kMostBits, ", got ", type.bits);
  if (type.is_sign())
    throw QuantError(kWhere, "signed codes of 1 bit have no 0: only weights of layers have them");
}

// The tensor's layout is [outer, channels, inner].
struct Runs {
  int64_t channels = 1;
  int64_t inner = 1;
};

Runs runs_along(const Shape& shape, int axis) {
  if (axis >= shape.rank()) throw ShapeError(kWhere, "no axis ", axis, " in ", shape);
  Runs runs;
  if (axis >= 0) runs.channels = shape[axis];
  for (int i = axis < 0 ? 0 : axis + 1; i < shape.rank(); ++i) runs.inner *= shape[i];
  return runs;
}

QParams own_params(const Tensor& x, const QType& type, QScheme scheme, int axis) {
  check_type(type);
  const Runs runs = runs_along(x.shape(), axis);
  const auto channels = static_cast<size_t>(runs.channels);
  std::vector<float> min(channels, 0.0f);
  std::vector<float> max(channels, 0.0f);
  if (x.elements() > 0) {
    const Floats x_floats = x.floats();
    kernels::min_max_channels_f32(
        x.elements(), runs.channels, runs.inner, x_floats, min.data(), max.data());
  }
  std::vector<Range> ranges;
  for (size_t c = 0; c < channels; ++c) ranges.push_back({min[c], max[c]});
  return choose_params(ranges, axis < 0 ? -1 : axis, type, scheme, kWhere);
}

}  // namespace

QuantizedTensor::QuantizedTensor(const Tensor& x, const QParams& params) : shape_(x.shape()) {
  check_type(params.type);
  validate(params, kWhere);
  const Runs runs = runs_along(shape_, params.axis);
  if (params.scale.size() != static_cast<size_t>(runs.channels)) {
    throw ShapeError(kWhere,
                     "parameters of ",
                     params.scale.size(),
                     " channels for axis ",
                     params.axis,
                     " of ",
                     shape_);
  }
  auto codes = std::make_shared<Codes>();
  codes->params = params;
  codes->storage = params.type.is_signed ? CodeStorage::kS8 : CodeStorage::kU8;
  codes->bytes = Buffer<uint8_t>(x.elements());
  std::vector<kernels::QuantizeF32> channels;
  for (size_t c = 0; c < params.scale.size(); ++c) {
    channels.push_back({.scale = params.scale[c],
                        .zero_point = params.zero_point[c],
                        .qmin = params.type.qmin(),
                        .qmax = params.type.qmax(),
                        .offset = codes->offset()});
  }
  const Floats x_floats = x.floats();
  if (x.elements() > 0 && !kernels::quantize_channels_f32_u8(x.elements(),
                                                             runs.channels,
                                                             runs.inner,
                                                             x_floats,
                                                             channels.data(),
                                                             codes->bytes.data(),
                                                             nullptr)) {
    throw DataError(kWhere, "the tensor ", shape_, " holds a NaN or infinity");
  }
  codes_ = std::move(codes);
}

QuantizedTensor::QuantizedTensor(const Tensor& x, const QType& type, QScheme scheme, int axis)
    : QuantizedTensor(x, own_params(x, type, scheme, axis)) {}

int32_t QuantizedTensor::code(int64_t i) const {
  if (i < 0 || i >= shape_.elements()) {
    throw ShapeError(kWhere, "no element ", i, " in ", shape_);
  }
  return codes_->storage == CodeStorage::kS8 ? int32_t{codes_->s8()[i]} : int32_t{codes_->u8()[i]};
}

Tensor QuantizedTensor::dequantize() const {
  Tensor y = Tensor::empty(shape_);
  codes_->to_float(shape_, y.mutable_data());
  return y;
}

double QuantizedTensor::quantization_error(const Tensor& x) const {
  if (x.shape() != shape_) {
    throw ShapeError("quantization_error", "original ", x.shape(), ", quantized ", shape_);
  }
  if (x.elements() == 0) return 0.0;
  const Floats original = x.floats();
  const Tensor restored = dequantize();
  double sum = 0.0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double distance =
        static_cast<double>(original[i]) - static_cast<double>(restored.data()[i]);
    sum += distance * distance;
  }
  return sum / static_cast<double>(x.elements());
}

int64_t QuantizedTensor::packed_bytes() const {
  return (shape_.elements() * params().type.bits + 7) / 8;
}

int64_t QuantizedTensor::parameter_bytes() const {
  return static_cast<int64_t>(params().scale.size() * (sizeof(float) + 1));
}

double QuantizedTensor::compression_ratio() const {
  return static_cast<double>(shape_.elements()) * sizeof(float) /
         static_cast<double>(packed_bytes() + parameter_bytes());
}

}  // namespace quantrain::quant
