#include "framework/autograd/value.hpp"

#include "framework/arithmetic/quantize.hpp"

namespace quantrain {

void Codes::to_float(const Shape& shape, float* y) const {
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

}  // namespace quantrain
