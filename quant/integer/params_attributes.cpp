#include "quant/integer/params_attributes.hpp"

#include <algorithm>

#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

// The values of a tensor by name; an empty vector if it may be absent.
template <class T>
std::vector<T> take(std::vector<LayerTensor>& tensors,
                    std::string_view name,
                    bool required,
                    const std::string& where) {
  for (LayerTensor& tensor : tensors) {
    if (tensor.name != name) continue;
    if (auto* values = std::get_if<std::vector<T>>(&tensor.values)) return std::move(*values);
    throw DataError(where, "tensor \"", name, "\" has another type");
  }
  if (required) throw DataError(where, "tensor \"", name, "\" is missing");
  return {};
}

}  // namespace

void check_activation(const QParams& params, std::string_view where) {
  validate(params, std::string(where).c_str());
  if (params.per_channel() || params.type.bits > 8) {
    throw QuantError(where, "integer activations are per tensor and of 2 to 8 bits, got ", params);
  }
}

void append(Attributes& attributes, const std::string& prefix, const QParams& params) {
  attributes.add(prefix + "_bits", int64_t{params.type.bits});
  attributes.add(prefix + "_signed", int64_t{params.type.is_signed});
  attributes.add(prefix + "_narrow", int64_t{params.type.narrow});
  attributes.add(prefix + "_scale", static_cast<double>(params.scale[0]));
  attributes.add(prefix + "_zero_point", int64_t{params.zero_point[0]});
}

QParams params_from(const Attributes& attributes,
                    const std::string& prefix,
                    std::string_view where) {
  QParams params;
  params.type.bits = static_cast<int>(attributes.integer(prefix + "_bits"));
  params.type.is_signed = attributes.integer(prefix + "_signed") != 0;
  params.type.narrow = attributes.integer(prefix + "_narrow") != 0;
  params.scale = {static_cast<float>(attributes.real(prefix + "_scale"))};
  params.zero_point = {static_cast<int32_t>(attributes.integer(prefix + "_zero_point"))};
  check_activation(params, where);
  return params;
}

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::kNone: return "none";
    case Activation::kRelu: return "relu";
    case Activation::kRelu6: return "relu6";
  }
  return "unknown";
}

Activation activation_from(std::string_view name, std::string_view where) {
  for (const Activation a : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    if (to_string(a) == name) return a;
  }
  throw DataError(where, "unknown activation \"", name, "\"");
}

void append(Attributes& attributes, const kernels::Conv2dShape& shape) {
  attributes.add("image", std::vector<int64_t>{shape.h, shape.w, shape.c});
  attributes.add("outputs", shape.o);
  attributes.add("kernel", std::vector<int64_t>{shape.kh, shape.kw});
  attributes.add("stride", std::vector<int64_t>{shape.stride_h, shape.stride_w});
  attributes.add("padding", std::vector<int64_t>{shape.pad_h, shape.pad_w});
  attributes.add("groups", shape.groups);
}

kernels::Conv2dShape shape_from(const Attributes& attributes, std::string_view where) {
  const auto list = [&](const char* name, size_t size) {
    const std::vector<int64_t>& values = attributes.integers(name);
    if (values.size() != size) throw ShapeError(where, name, " has ", values.size(), " entries");
    return values;
  };
  const std::vector<int64_t> image = list("image", 3);
  const std::vector<int64_t> kernel = list("kernel", 2);
  const std::vector<int64_t> stride = list("stride", 2);
  const std::vector<int64_t> padding = list("padding", 2);
  const kernels::Conv2dShape shape{.n = 1,
                                   .h = image[0],
                                   .w = image[1],
                                   .c = image[2],
                                   .o = attributes.integer("outputs"),
                                   .kh = kernel[0],
                                   .kw = kernel[1],
                                   .stride_h = stride[0],
                                   .stride_w = stride[1],
                                   .pad_h = padding[0],
                                   .pad_w = padding[1],
                                   .groups = attributes.integer("groups")};
  check_shape(shape, where);
  return shape;
}

void check_shape(const kernels::Conv2dShape& s, std::string_view where) {
  constexpr int64_t kLargest = int64_t{1} << 20;  // three extents' product stays inside of 64 bits
  for (const int64_t extent : {s.h, s.w, s.c, s.o, s.kh, s.kw, s.stride_h, s.stride_w, s.groups}) {
    if (extent < 1 || extent > kLargest)
      throw ShapeError(where, "extent ", extent, " is not in [1, ", kLargest, "]");
  }
  if (s.pad_h < 0 || s.pad_w < 0 || s.pad_h > kLargest || s.pad_w > kLargest) {
    throw ShapeError(where, "padding [", s.pad_h, ", ", s.pad_w, "]");
  }
  if (s.c % s.groups != 0 || s.o % s.groups != 0) {
    throw ShapeError(
        where, s.groups, " groups do not divide ", s.c, " inputs and ", s.o, " outputs");
  }
  if (s.kh > s.h + 2 * s.pad_h || s.kw > s.w + 2 * s.pad_w) {
    throw ShapeError(where,
                     "kernel [",
                     s.kh,
                     ", ",
                     s.kw,
                     "] exceeds the padded image [",
                     s.h + 2 * s.pad_h,
                     ", ",
                     s.w + 2 * s.pad_w,
                     "]");
  }
}

QuantizedWeights load_weights(const std::string& where,
                              const Attributes& attributes,
                              std::vector<LayerTensor> tensors) {
  QuantizedWeights weights{.codes = take<int8_t>(tensors, "weight", true, where),
                           .scale = take<float>(tensors, "weight_scale", true, where),
                           .bias = take<int32_t>(tensors, "bias", false, where),
                           .bits = static_cast<int>(attributes.integer("weight_bits"))};
  if (weights.bits < 2 || weights.bits > 8) throw DataError(where, "weight_bits is ", weights.bits);
  const int limit = 1 << (weights.bits - 1);
  for (const int8_t code : weights.codes) {
    if (code < -limit || code >= limit)
      throw DataError(where, "weight ", int{code}, " has not ", weights.bits, " bits");
  }
  return weights;
}

}  // namespace quantrain::quant
