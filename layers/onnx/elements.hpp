#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// Whether elements of this type are floats: float, double, float16 or bfloat16.
bool is_float(ElementType type);

/// The least and the largest element of a type of integers or bools; of all others, those of int64.
std::pair<int64_t, int64_t> range_of(ElementType type);

/// All elements, as float32. Doubles are rounded; integers are exact up to 2^24.
/// Throws: DataError naming the tensor if a double is finite and beyond float32.
std::vector<float> floats_of(const StoredTensor& tensor);
/// All elements of a tensor of integers or bools. Elements of 4 bits are extended.
/// Throws: DataError naming the tensor if its type is a float, or if an element does not fit int64.
std::vector<int64_t> integers_of(const StoredTensor& tensor);

}  // namespace quantrain::onnx
