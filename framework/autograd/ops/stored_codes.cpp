#include "framework/autograd/ops/stored_codes.hpp"

#include "framework/arithmetic/fixed_point.hpp"

namespace quantrain {

std::shared_ptr<const Codes> activation_codes(const Tensor& x) {
  if (x.kind() != ValueKind::kCodes) return nullptr;
  const std::shared_ptr<const Codes>& codes = x.codes();
  const bool activation = codes->storage == CodeStorage::kU8 && !codes->params.per_channel();
  return activation ? codes : nullptr;
}

Samples::Samples(const Shape& shape) : count(shape.rank() == 0 ? 1 : shape[0]) {
  for (int axis = 1; axis < shape.rank(); ++axis) size *= shape[axis];
}

Tensor computed_codes(const Shape& shape,
                      Buffer<uint8_t> bytes,
                      const QParams& params,
                      std::shared_ptr<const integer::Operation> operation) {
  auto codes = std::make_shared<Codes>();
  codes->bytes = std::move(bytes);
  codes->params = params;
  codes->operation = std::move(operation);
  return Tensor::from_codes(shape, std::move(codes));
}

CodeFlags rescale_passes(int32_t zero_x, Multiplier multiplier, const QParams& y) {
  const GradientMask bounds = gradient_mask(y, nullptr);
  const int32_t zero_y = stored_zero_point(y);
  CodeFlags flags;
  for (int32_t q = 0; q < 256; ++q) {
    const int64_t code = requantize_unclamped(q - zero_x, multiplier, zero_y);
    flags[static_cast<size_t>(q)] = code >= bounds.lo && code <= bounds.hi;
  }
  return flags;
}

}  // namespace quantrain
