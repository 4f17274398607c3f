#include "framework/autograd/value.hpp"

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {

void Codes::to_float(const Shape& shape, float* y) const {
  if (storage == CodeStorage::kU8 && !params.per_channel()) {
    kernels::dequantize_u8_f32(shape.elements(), u8(), params.scale[0], stored_zero_point(), y);
    return;
  }
  const int64_t channels = params.per_channel() ? shape[params.axis] : 1;
  int64_t inner = 1;  // contiguous elements of one channel
  for (int axis = params.per_channel() ? params.axis + 1 : 0; axis < shape.rank(); ++axis)
    inner *= shape[axis];
  const int64_t rows = inner == 0 ? 0 : shape.elements() / inner;
  const kernels::CodeView codes = view();
  parallel_for(rows, kernels::row_grain(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      codes.to_float(row % channels, row * inner, inner, y + row * inner);
  });
}

void Codes::decode(float* y) const {
  if (params.scale[0] == 1.0f / 255.0f && stored_zero_point() == 0) {
    kernels::bytes_f32(bytes.size(), u8(), y);
  } else {
    kernels::dequantize_u8_f32(bytes.size(), u8(), params.scale[0], stored_zero_point(), y);
  }
}

bool Codes::same_meaning(const Codes& other) const {
  const bool same_features =
      features == other.features ||
      (features != nullptr && other.features != nullptr && *features == *other.features);
  return params == other.params && storage == other.storage && same_features;
}

Range WaitingResult::range(int64_t n, Activation activation) const {
  Buffer<float> x(n);
  to_float(x.data());
  Range range;
  kernels::min_max_f32(n, x.data(), &range.min, &range.max);
  return activated(range, activation);
}

void WaitingResult::activation_mask(int64_t n, Activation activation, uint8_t* mask) const {
  Buffer<float> x(n);
  to_float(x.data());
  kernels::relu_f32(n, x.data(), upper_bound(activation), x.data(), mask);
}

}  // namespace quantrain
