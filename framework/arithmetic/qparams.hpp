#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

namespace quantrain {

/// Bits of a code: the fewest, the most of integer networks, and the most that can be simulated.
inline constexpr int kLeastBits = 1;
inline constexpr int kMostBits = 8;
inline constexpr int kMostSimulatedBits = 16;

/// The codes that a quantized value can have: unsigned [0, 2^bits - 1], signed full range
/// [-2^(bits-1), 2^(bits-1) - 1], or signed narrow range [-(2^(bits-1) - 1), 2^(bits-1) - 1].
/// Signed codes of 1 bit are -1 and +1; they are narrow.   docs/quantization.md (1), (27)
struct QType {
  int bits = 8;
  bool is_signed = false;
  bool narrow = false;

  int32_t qmin() const { return !is_signed ? 0 : narrow ? -qmax() : -(int32_t{1} << (bits - 1)); }
  int32_t qmax() const { return (int32_t{1} << (is_signed && bits > 1 ? bits - 1 : bits)) - 1; }
  /// Number of codes.
  int32_t levels() const { return bits == 1 ? 2 : qmax() - qmin() + 1; }
  /// Whether the codes are -1 and +1, without 0.
  bool is_sign() const { return is_signed && bits == 1; }

  friend bool operator==(const QType&, const QType&) = default;
};

enum class QScheme {
  kAffine,     ///< any zero point
  kSymmetric,  ///< zero point 0, or the middle code if codes are unsigned
};

/// Closed interval of real values.
struct Range {
  float min = 0.0f;
  float max = 0.0f;

  friend bool operator==(const Range&, const Range&) = default;
};

/// real = scale * (q - zero_point), per tensor (axis < 0, one entry) or per index along `axis`.
/// docs/quantization.md (1)
struct QParams {
  QType type;
  int axis = -1;
  std::vector<float> scale;
  std::vector<int32_t> zero_point;

  bool per_channel() const { return axis >= 0; }
  /// Real values of the lowest and highest code of channel c.
  Range float_range(size_t c = 0) const {
    return {scale[c] * static_cast<float>(type.qmin() - zero_point[c]),
            scale[c] * static_cast<float>(type.qmax() - zero_point[c])};
  }

  friend bool operator==(const QParams&, const QParams&) = default;
};

/// Throws: QuantError naming `where` (a layer or operation) if there are fewer than kLeastBits or
/// more than kMostSimulatedBits, if the type is narrow but not signed, or if it is signed with 1
/// bit but not narrow.
void validate(const QType& type, std::string_view where);
/// Throws: QuantError naming `where` unless the type is valid, there are as many scales as zero
/// points (exactly one if axis < 0, else at least one), each scale is positive, finite and normal,
/// and each zero point is a code.
void validate(const QParams& params, std::string_view where);
/// The same for the scale and zero point of one channel.
void validate_channel(
    float scale, int32_t zero_point, size_t channel, const QType& type, std::string_view where);

/// Prints "u8", "s4", "s8 narrow".
std::ostream& operator<<(std::ostream& stream, const QType& type);
/// Prints "u8 scale 0.0039 zero point 0", "s8 per channel (16, axis 0)", or "u8 without parameters"
/// if there is no scale.
std::ostream& operator<<(std::ostream& stream, const QParams& params);

}  // namespace quantrain
