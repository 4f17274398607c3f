#include "quant/analysis/batch_part.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "quant/prepare/input_quantize.hpp"

namespace quantrain::quant {

Tensor batch_part(const Tensor& batch, int64_t first, int64_t n) {
  std::vector<int64_t> extents(batch.shape().begin(), batch.shape().end());
  const int64_t size = batch.elements() / extents[0];
  extents[0] = n;
  const Shape shape(extents);
  const std::shared_ptr<const Codes> codes = input_codes(batch);
  if (codes == nullptr) {
    const Floats values = batch.floats();
    return Tensor::from(shape, {values.data() + first * size, static_cast<size_t>(n * size)});
  }
  auto part = std::make_shared<Codes>(Codes{.bytes = Buffer<uint8_t>(n * size),
                                            .storage = codes->storage,
                                            .params = codes->params,
                                            .features = codes->features});
  std::copy_n(codes->u8() + first * size, n * size, part->bytes.data());
  return Tensor::decoded(shape, std::move(part));
}

}  // namespace quantrain::quant
