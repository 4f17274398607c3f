#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "framework/arithmetic/qparams.hpp"

// What stands between the values that a user has and the codes of an input: one function for data
// sets, simulation and the deployed network.   docs/quantization.md (12), (20)
namespace quantrain::integer {

/// z = (x - offset[f]) / scale[f] for an element of feature f, its place along the last axis:
/// element i has f = i % size(). The network sees z, and z is what has codes. Empty: z = x.
/// docs/quantization.md (20)
struct InputFeatures {
  std::vector<float> offset;
  std::vector<float> scale;

  bool empty() const { return offset.empty() && scale.empty(); }
  int64_t size() const { return static_cast<int64_t>(scale.size()); }
  friend bool operator==(const InputFeatures&, const InputFeatures&) = default;
};

/// In float32: the difference is rounded, then the quotient.   docs/quantization.md (20)
inline float feature_value(float x, float offset, float scale) { return (x - offset) / scale; }
/// The reverse, rounded once.
inline float raw_value(float z, float offset, float scale) {
  return static_cast<float>(double{offset} + double{scale} * double{z});
}

/// Throws: QuantError naming `where` unless there are none, or an offset and a scale for each of
/// `extent` features, all finite and each scale positive.
void validate(const InputFeatures& features, int64_t extent, std::string_view where);

/// Parameters of an input's unsigned 8-bit codes that cover a declared range, widened to contain 0.
/// docs/quantization.md (2), (12)
/// Throws: QuantError naming `where` if the range is empty or not finite.
QParams input_params(Range range, std::string_view where);

/// Raw values to stored codes, by (20) and (3). Shapes: x [..., features]  ->  codes like x.
/// Returns how many values lie outside of what the codes can represent: their code before the clamp
/// of (3) is no code, and they saturate. mask, where it is not null: bit i % 8 of mask[i / 8] says
/// that element i is not one of them.
/// Throws: ShapeError naming `where` if codes is not as long as x, or x holds no whole number of
/// rows of features; DataError if a value, or its z, is NaN or infinite.
int64_t encode_input(std::span<const float> x,
                     const QParams& params,
                     const InputFeatures& features,
                     std::span<uint8_t> codes,
                     std::string_view where,
                     uint8_t* mask = nullptr);

}  // namespace quantrain::integer
