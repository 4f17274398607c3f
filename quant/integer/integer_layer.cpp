#include "quant/integer/integer_layer.hpp"

#include "framework/autograd/value.hpp"
#include "framework/core/error.hpp"

namespace quantrain::quant {

int32_t stored_zero_point(const QParams& activation) {
  return activation.zero_point[0] + Codes::offset(CodeStorage::kU8, activation.type);
}

CodeClamp stored_clamp(const QParams& activation, Activation fused) {
  const CodeClamp clamp =
      code_clamp(fused, activation.type, activation.scale[0], activation.zero_point[0]);
  const int32_t offset = Codes::offset(CodeStorage::kU8, activation.type);
  return {clamp.lo + offset, clamp.hi + offset};
}

double IntegerLayer::accumulator_scale() const {
  throw QuantError(name(), "the output is no accumulators");
}

int64_t IntegerLayer::size_bytes() const {
  int64_t bytes = 0;
  for (const LayerTensor& tensor : tensors()) {
    std::visit(
        [&](const auto& values) {
          bytes += static_cast<int64_t>(values.size() * sizeof(values[0]));
        },
        tensor.values);
  }
  // Scale and zero point of the output.
  return bytes + (output_kind() == OutputKind::kCodes ? 8 : 0);
}

}  // namespace quantrain::quant
