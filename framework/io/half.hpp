#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/io/safetensors.hpp"

// Floats of 16 bits, which only files from elsewhere hold. A device's program leaves this out.
namespace quantrain {

/// The float that 16 bits stand for: IEEE 754 binary16, or the upper half of a float32 (bfloat16).
/// Exact, also for subnormal numbers, infinities and NaN.
float from_float16(uint16_t bits);
float from_bfloat16(uint16_t bits);

/// The elements of an entry of type F32, F16 (IEEE 754 binary16) or BF16 (the upper half of a
/// float32). Each value is exact in float32.
/// Throws: DataError if the entry is missing or has another type.
std::vector<float> float_values(const TensorFile& file, std::string_view name);

}  // namespace quantrain
