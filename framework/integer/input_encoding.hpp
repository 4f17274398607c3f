#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"

// Conversion of a user's raw values to the codes of an input. Data sets, simulation and the
// deployed network call the same function.   docs/quantization.md (12), (20)
namespace quantrain {

/// What to do with values outside of the declared range, which have no code of their own.
enum class Outside {
  kRefuse,      ///< throws an error if there is such a value
  kRefuseMost,  ///< throws an error if more than half of the values are outside, or, in a call of 8
                ///< samples and more, more than nine tenths of a column (index along the last
                ///< axis): then they are probably in other units. The rest saturates
  kSaturate,    ///< such values get the nearest code, and are counted
};

/// Whether `outside` refuses a batch in which so many values saturate.
constexpr bool refuses(Outside outside, int64_t saturated, int64_t values) {
  if (outside == Outside::kSaturate) return false;
  return outside == Outside::kRefuse ? saturated > 0 : saturated > values / 2;
}
/// Whether kRefuseMost refuses a column of which so many values saturate.
constexpr bool refuses_column(int64_t saturated, int64_t values) {
  return 10 * saturated > 9 * values;
}

}  // namespace quantrain

namespace quantrain::integer {

/// Fewest codes that a declared range must have within it.   docs/quantization.md (12)
inline constexpr int32_t kLeastCodes = 16;

/// z = (x - offset[f]) / scale[f], where f is the element's index along the last axis: element i
/// has f = i % size(). The network sees z, and the codes stand for z. Without features, z = x.
/// docs/quantization.md (20)
struct InputFeatures {
  std::vector<float> offset;
  std::vector<float> scale;

  bool empty() const { return offset.empty() && scale.empty(); }
  int64_t size() const { return static_cast<int64_t>(scale.size()); }
  friend bool operator==(const InputFeatures&, const InputFeatures&) = default;
};

/// z of one value, in float32: the difference is rounded, then the quotient.
/// docs/quantization.md (20)
inline float feature_value(float x, float offset, float scale) { return (x - offset) / scale; }
/// z of value i in rows of features; without features, the value itself.
inline float feature_value(std::span<const float> values, size_t i, const InputFeatures& features) {
  if (features.empty()) return values[i];
  const size_t f = i % features.scale.size();
  return feature_value(values[i], features.offset[f], features.scale[f]);
}
/// The inverse of one value's z, computed in double and rounded to float32 once.
inline float raw_value(float z, float offset, float scale) {
  return static_cast<float>(double{offset} + double{scale} * double{z});
}

/// Throws: QuantError naming `where` unless features are empty, or have a finite offset and a
/// finite positive scale for each of `extent` features.
void validate(const InputFeatures& features, int64_t extent, std::string_view where);

/// Parameters of an input's unsigned 8-bit codes for a declared range, which is widened to contain
/// 0.   docs/quantization.md (2), (12)
/// Throws: QuantError naming `where` if the range is empty or not finite, or is so far from 0 that
/// fewer than kLeastCodes codes lie within it.
QParams input_params(Range range, std::string_view where);

/// Converts raw values to stored codes by (20) and (3).
/// Shapes: x [..., features]  ->  codes like x.
/// Returns the number of values that saturate: those that the clamp of (3) changes. mask, if not
/// null: bit i % 8 of mask[i / 8] is set if element i does not saturate.
/// Throws: ShapeError naming `where` if codes is not as long as x, or x does not hold whole rows of
/// features; QuantError if params are not valid for an input, or validate() refuses the features;
/// DataError if a value, or its z, is NaN or infinite.
int64_t encode_input(std::span<const float> x,
                     const QParams& params,
                     const InputFeatures& features,
                     std::span<uint8_t> codes,
                     std::string_view where,
                     uint8_t* mask = nullptr);

}  // namespace quantrain::integer
