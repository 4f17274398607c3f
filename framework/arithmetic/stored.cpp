#include "framework/arithmetic/stored.hpp"

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {

StoredOutput stored_output(const QParams& y, Activation activation) {
  validate(y, "requantize");
  if (y.per_channel() || y.type.bits > kMostBits) {
    throw QuantError("requantize", "activations have one scale and at most 8 bits, got ", y);
  }
  const DefaultRounding rounding;
  const int32_t offset = stored_offset(y.type);
  const CodeClamp clamp = code_clamp(activation, y.type, y.scale[0], y.zero_point[0]);
  return {y.zero_point[0] + offset, clamp.lo + offset, clamp.hi + offset};
}

void check_activation(const QParams& params, std::string_view where) {
  validate(params, where);
  if (params.per_channel() || params.type.bits > kMostBits) {
    throw QuantError(where,
                     "integer activations are per tensor and of ",
                     kLeastBits,
                     " to ",
                     kMostBits,
                     " bits, got ",
                     params);
  }
  if (params.type.is_sign())
    throw QuantError(where, "activations of 1 bit are unsigned, got ", params);
}

}  // namespace quantrain
