#pragma once

#include <cstdint>
#include <string_view>

#include "framework/arithmetic/activation.hpp"
#include "framework/arithmetic/qparams.hpp"

// Codes of activations as stored in memory: one unsigned byte each.   docs/quantization.md (13)
namespace quantrain {

/// Stored byte = code + offset.
inline int32_t stored_offset(const QType& activation) { return activation.is_signed ? 128 : 0; }
/// Zero point of the stored bytes. Takes per-tensor parameters.
inline int32_t stored_zero_point(const QParams& activation) {
  return activation.zero_point[0] + stored_offset(activation.type);
}

/// Real value of a stored code, exact in double.   docs/quantization.md (1)
inline double code_value(int32_t stored, const QParams& params) {
  return static_cast<double>(params.scale[0]) * (stored - stored_zero_point(params));
}

/// The zero point that a requantization adds and the bounds that it clamps to, in stored bytes.
/// docs/quantization.md (8), (9)
struct StoredOutput {
  int32_t zero_point = 0;
  int32_t lo = 0;
  int32_t hi = 255;

  friend bool operator==(const StoredOutput&, const StoredOutput&) = default;
};

/// The zero point of codes with parameters y, and their bounds after the activation.
/// Throws: QuantError if y is invalid, is per channel or has more than 8 bits.
StoredOutput stored_output(const QParams& y, Activation activation);

/// Marks the elements whose quantization passes the gradient. Bit i % 8 of bits[i / 8] is set if
/// the stored code of element i lies in [lo, hi] before the clamp. If bits is null, no mask is
/// written.
/// docs/quantization.md (4)
struct GradientMask {
  uint8_t* bits = nullptr;
  int32_t lo = 0;
  int32_t hi = 255;
};
inline GradientMask gradient_mask(const QParams& y, uint8_t* bits) {
  const int32_t offset = stored_offset(y.type);
  return {bits, y.type.qmin() + offset, y.type.qmax() + offset};
}

/// Throws: QuantError naming `where` unless params are valid, per tensor and of 1 to 8 bits, and
/// not signed if they have 1 bit.
void check_activation(const QParams& params, std::string_view where);

}  // namespace quantrain
