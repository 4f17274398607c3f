#include "framework/autograd/value.hpp"

#include "framework/arithmetic/quantize.hpp"
#include "framework/kernels/elementwise.hpp"
#include "framework/kernels/integer.hpp"

namespace quantrain {

void Codes::to_float(const Shape& shape, float* y) const {
  if (storage == CodeStorage::kU8 && !params.per_channel()) {
    kernels::dequantize_u8_f32(shape.elements(), u8(), params.scale[0], stored_zero_point(), y);
    return;
  }
  const int64_t channels = params.per_channel() ? shape[params.axis] : 1;
  int64_t inner = 1;  // elements of one channel that lie next to each other
  for (int axis = params.per_channel() ? params.axis + 1 : 0; axis < shape.rank(); ++axis)
    inner *= shape[axis];
  const int64_t rows = inner == 0 ? 0 : shape.elements() / inner;
  for (int64_t row = 0; row < rows; ++row) {
    const auto c = static_cast<size_t>(row % channels);
    const int32_t zero = params.zero_point[c] + offset();
    for (int64_t i = row * inner; i < (row + 1) * inner; ++i) {
      const int32_t stored = storage == CodeStorage::kU8 ? int32_t{u8()[i]} : int32_t{s8()[i]};
      y[i] = dequantize(stored, params.scale[c], zero);
    }
  }
}

void Accumulators::activation_mask(int64_t n, Activation activation, uint8_t* mask) const {
  Buffer<float> x(n);
  to_float(x.data());
  const float hi = activation == Activation::kRelu6 ? 6.0f : __builtin_inff();
  kernels::relu_f32(n, x.data(), hi, x.data(), mask);
}

}  // namespace quantrain
