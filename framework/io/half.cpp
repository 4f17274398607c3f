#include "framework/io/half.hpp"

#include <bit>
#include <cmath>

#include "framework/core/error.hpp"

namespace quantrain {

float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float from_float16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 31u;
  const uint32_t fraction = bits & 1023u;
  if (exponent == 31)  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = std::ldexp(static_cast<float>(fraction), -24);  // subnormal
  return sign != 0 ? -small : small;
}

std::vector<float> float_values(const TensorFile& file, std::string_view name) {
  const TensorFile::Entry& entry = file.at(name);
  if (entry.dtype == DType::kF32) return file.values<float>(name);
  if (entry.dtype != DType::kF16 && entry.dtype != DType::kBF16) {
    throw DataError("safetensors",
                    "\"",
                    name,
                    "\" is ",
                    dtype_name(entry.dtype),
                    ", expected F32, F16 or BF16");
  }
  std::vector<float> values;
  values.reserve(entry.bytes.size() / 2);
  for (size_t i = 0; i + 1 < entry.bytes.size(); i += 2) {
    const auto bits = static_cast<uint16_t>(entry.bytes[i] | entry.bytes[i + 1] << 8);
    values.push_back(entry.dtype == DType::kF16 ? from_float16(bits) : from_bfloat16(bits));
  }
  return values;
}

}  // namespace quantrain
