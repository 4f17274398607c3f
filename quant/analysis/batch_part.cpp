#include "quant/analysis/batch_part.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "quant/prepare/input_quantize.hpp"

namespace quantrain::quant {

Tensor batch_part(const Tensor& batch, int64_t first, int64_t n) {
  std::vector<int64_t> indices(static_cast<size_t>(n));
  std::iota(indices.begin(), indices.end(), first);
  return batch_samples(batch, indices);
}

Tensor batch_samples(const Tensor& batch, std::span<const int64_t> indices) {
  std::vector<int64_t> extents(batch.shape().begin(), batch.shape().end());
  const int64_t size = batch.elements() / extents[0];
  extents[0] = std::ssize(indices);
  const Shape shape(extents);
  const auto gather = [&](const auto* from, auto* to) {
    for (const int64_t i : indices) to = std::copy_n(from + i * size, size, to);
  };
  const std::shared_ptr<const Codes> codes = input_codes(batch);
  if (codes == nullptr) {
    const Floats values = batch.floats();
    Tensor part = Tensor::empty(shape);
    gather(values.data(), part.mutable_data());
    return part;
  }
  auto part = std::make_shared<Codes>(Codes{.bytes = Buffer<uint8_t>(shape.elements()),
                                            .storage = codes->storage,
                                            .params = codes->params,
                                            .features = codes->features});
  gather(codes->u8(), part->bytes.data());
  return Tensor::decoded(shape, std::move(part));
}

}  // namespace quantrain::quant
