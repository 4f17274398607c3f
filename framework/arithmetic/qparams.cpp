#include "framework/arithmetic/qparams.hpp"

#include <cmath>
#include <ostream>

#include "framework/core/error.hpp"

namespace quantrain {

void validate(const QType& type, std::string_view where) {
  if (type.bits < kLeastBits || type.bits > kMostSimulatedBits) {
    throw QuantError(
        where, "bits must be ", kLeastBits, " to ", kMostSimulatedBits, ", got ", type.bits);
  }
  if (type.narrow && !type.is_signed) throw QuantError(where, "a narrow range needs signed codes");
  if (type.is_sign() && !type.narrow)
    throw QuantError(where, "signed codes of 1 bit are -1 and +1: their range is narrow");
}

void validate(const QParams& params, std::string_view where) {
  const QType& type = params.type;
  validate(type, where);
  if (params.scale.empty() || params.scale.size() != params.zero_point.size()) {
    throw QuantError(where,
                     "expected one zero point for each scale and at least one scale, got ",
                     params.scale.size(),
                     " scales and ",
                     params.zero_point.size(),
                     " zero points");
  }
  if (!params.per_channel() && params.scale.size() != 1) {
    throw QuantError(where, "per-tensor parameters with ", params.scale.size(), " scales");
  }
  for (size_t c = 0; c < params.scale.size(); ++c)
    validate_channel(params.scale[c], params.zero_point[c], c, type, where);
}

void validate_channel(
    float scale, int32_t zero_point, size_t channel, const QType& type, std::string_view where) {
  if (!(scale > 0.0f) || !std::isnormal(scale)) {
    throw QuantError(
        where, "scale of channel ", channel, " is not positive, finite and normal: ", scale);
  }
  if (zero_point < type.qmin() || zero_point > type.qmax()) {
    throw QuantError(where,
                     "zero point of channel ",
                     channel,
                     " is not a code: ",
                     zero_point,
                     ", codes are [",
                     type.qmin(),
                     ", ",
                     type.qmax(),
                     "]");
  }
}

std::ostream& operator<<(std::ostream& stream, const QType& type) {
  return stream << (type.is_signed ? 's' : 'u') << type.bits << (type.narrow ? " narrow" : "");
}

std::ostream& operator<<(std::ostream& stream, const QParams& params) {
  stream << params.type;
  if (params.per_channel()) {
    return stream << " per channel (" << params.scale.size() << ", axis " << params.axis << ')';
  }
  if (params.scale.empty()) return stream << " without parameters";
  return stream << " scale " << params.scale[0] << " zero point " << params.zero_point[0];
}

}  // namespace quantrain
