#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/input_encoding.hpp"

namespace quantrain {

/// What the codes of a declared range keep of one feature's values.
struct FeatureCoverage {
  std::string name;        ///< the feature's name, or its index
  int64_t values = 0;      ///< different values in the middle 99 % of all values
  int64_t codes = 0;       ///< different codes that these values get
  double saturated = 0.0;  ///< share of all values that saturate
};

/// The same for all features of an input. Plain data; printed as a table with the warnings.
struct InputCoverage {
  Range range;  ///< as declared
  std::vector<FeatureCoverage> features;

  /// A text for each feature of which different values share few codes (fewer than
  /// integer::kLeastCodes), and for each of which more than 1 % of the values saturate. Each says
  /// what to call instead.
  std::vector<std::string> warnings() const;
};

/// Says what is lost if these rows become codes of the range: how many codes most of the values
/// use, and how many values saturate. A few spikes can widen the range of the extremes so far that
/// all other values share three codes. Training on such codes cannot show it, because the network
/// sees the same codes in float.
/// Shapes: rows [..., features]; without features, all values count as one feature.
/// The middle 99 % are the values from the 0.5th to the 99.5th percentile, by the nearest rank
/// (docs/quantization.md (14)), of z by (20).
/// Throws: DataError if there are no rows, the last row is incomplete, a value or its z is NaN or
/// infinite, or the number of names is wrong; QuantError like integer::input_params(), or if an
/// offset or a scale is missing or invalid.
InputCoverage coverage(std::span<const float> rows,
                       Range range,
                       const integer::InputFeatures& features = {},
                       const std::vector<std::string>& names = {});

std::ostream& operator<<(std::ostream& stream, const InputCoverage& coverage);

}  // namespace quantrain
