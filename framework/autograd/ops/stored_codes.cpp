#include "framework/autograd/ops/stored_codes.hpp"

#include "framework/core/error.hpp"

namespace quantrain {

std::shared_ptr<const Codes> activation_codes(const Tensor& x) {
  if (x.kind() != ValueKind::kCodes) return nullptr;
  const std::shared_ptr<const Codes>& codes = x.codes();
  const bool activation = codes->storage == CodeStorage::kU8 && !codes->params.per_channel();
  return activation ? codes : nullptr;
}

StoredOutput::StoredOutput(const QParams& y, Activation activation) {
  if (y.per_channel() || y.type.bits > 8) {
    throw QuantError("requantize", "activations have one scale and at most 8 bits, got ", y);
  }
  const int32_t offset = Codes::offset(CodeStorage::kU8, y.type);
  const CodeClamp clamp = code_clamp(activation, y.type, y.scale[0], y.zero_point[0]);
  scale = y.scale[0];
  zero_point = y.zero_point[0] + offset;
  lo = clamp.lo + offset;
  hi = clamp.hi + offset;
  mask_lo = y.type.qmin() + offset;
  mask_hi = y.type.qmax() + offset;
}

}  // namespace quantrain
