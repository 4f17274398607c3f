#include "layers/onnx/elements.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/io/half.hpp"

namespace quantrain::onnx {
namespace {

template <class T, class F>
void for_each_of(const StoredTensor& tensor, const F& f) {
  const std::span<const uint8_t> bytes = tensor.bytes.view;
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    f(value);
  }
}

/// Calls f for all elements of a type of integers, each in its own type; those of 4 bits as int8_t.
template <class F>
void for_each_integer(const StoredTensor& tensor, const F& f) {
  switch (tensor.type) {
    case ElementType::kBool:
    case ElementType::kUint8: return for_each_of<uint8_t>(tensor, f);
    case ElementType::kInt8: return for_each_of<int8_t>(tensor, f);
    case ElementType::kUint16: return for_each_of<uint16_t>(tensor, f);
    case ElementType::kInt16: return for_each_of<int16_t>(tensor, f);
    case ElementType::kInt32: return for_each_of<int32_t>(tensor, f);
    case ElementType::kUint32: return for_each_of<uint32_t>(tensor, f);
    case ElementType::kInt64: return for_each_of<int64_t>(tensor, f);
    case ElementType::kUint64: return for_each_of<uint64_t>(tensor, f);
    case ElementType::kUint4:
    case ElementType::kInt4: {
      const int64_t n = tensor.elements();
      for (int64_t i = 0; i < n; ++i) {
        const int byte = tensor.bytes.view[static_cast<size_t>(i / 2)];
        const int half = i % 2 == 0 ? byte & 15 : byte >> 4;
        f(static_cast<int8_t>(tensor.type == ElementType::kInt4 && half > 7 ? half - 16 : half));
      }
      return;
    }
    default:
      throw DataError("onnx",
                      "the tensor \"",
                      tensor.name,
                      "\" has elements of type ",
                      name_of(tensor.type),
                      ", expected integers");
  }
}

}  // namespace

bool is_float(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kDouble ||
         type == ElementType::kFloat16 || type == ElementType::kBfloat16;
}

std::pair<int64_t, int64_t> range_of(ElementType type) {
  switch (type) {
    case ElementType::kBool: return {0, 1};
    case ElementType::kUint4: return {0, 15};
    case ElementType::kInt4: return {-8, 7};
    case ElementType::kUint8: return {0, 255};
    case ElementType::kInt8: return {-128, 127};
    case ElementType::kUint16: return {0, 65535};
    case ElementType::kInt16: return {-32768, 32767};
    case ElementType::kUint32: return {0, std::numeric_limits<uint32_t>::max()};
    case ElementType::kInt32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    default: return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

std::vector<float> floats_of(const StoredTensor& tensor) {
  const DefaultRounding rounding;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(tensor.elements()));
  switch (tensor.type) {
    case ElementType::kFloat:
      for_each_of<float>(tensor, [&](float value) { values.push_back(value); });
      break;
    case ElementType::kFloat16:
      for_each_of<uint16_t>(tensor, [&](uint16_t bits) { values.push_back(from_float16(bits)); });
      break;
    case ElementType::kBfloat16:
      for_each_of<uint16_t>(tensor, [&](uint16_t bits) { values.push_back(from_bfloat16(bits)); });
      break;
    case ElementType::kDouble:
      for_each_of<double>(tensor, [&](double value) {
        if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
          throw DataError("onnx",
                          "the tensor \"",
                          tensor.name,
                          "\" has the value ",
                          value,
                          ", beyond what a float32 can hold");
        }
        values.push_back(static_cast<float>(value));
      });
      break;
    default:
      for_each_integer(tensor, [&](auto value) { values.push_back(static_cast<float>(value)); });
  }
  return values;
}

std::vector<int64_t> integers_of(const StoredTensor& tensor) {
  std::vector<int64_t> values;
  values.reserve(static_cast<size_t>(tensor.elements()));
  for_each_integer(tensor, [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), uint64_t>) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        throw DataError("onnx", "the tensor \"", tensor.name, "\" has a value beyond int64");
    }
    values.push_back(static_cast<int64_t>(value));
  });
  return values;
}

}  // namespace quantrain::onnx
