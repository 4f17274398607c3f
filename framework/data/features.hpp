#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/integer/input_encoding.hpp"

// Offsets and scales that bring features of different magnitudes to one range: a raw value x
// becomes z = (x - offset) / scale. Fit them on the training rows and give them to
// Dataset::from_floats or SampleArray::encoded. Use the same for the test rows, whose values may be
// outside of the range (Outside::kSaturate). The data carry them into the network, and they are
// saved with it.   docs/quantization.md (20)
namespace quantrain {

/// What to do with a feature that has the same value in all rows. It carries no information. A
/// deployed program may see other values, but these rows give no scale for them.
enum class ConstantFeature {
  kRefuse,  ///< throws an error that names the feature
  kKeep,    ///< scale 1, like scikit-learn's StandardScaler and MinMaxScaler
};

struct FeatureOptions {
  ConstantFeature constant = ConstantFeature::kRefuse;
  std::span<const std::string> names = {};  ///< names of the features, for messages
};

/// z has mean 0 and standard deviation 1: offset = mean, scale = sqrt(mean of (x - mean)^2), in
/// double.
/// Shapes: rows [..., features]  ->  offset and scale [features].
/// Throws: DataError if there are no rows, the last row is incomplete, a value is NaN or infinite,
/// the number of names is wrong, or a feature is constant with ConstantFeature::kRefuse.
integer::InputFeatures fit_mean_std(std::span<const float> rows,
                                    int64_t features,
                                    const FeatureOptions& options = {});
/// z lies in [0, 1]: offset = min, scale = max - min.
/// Throws: DataError like fit_mean_std, also if max - min is infinite.
integer::InputFeatures fit_min_max(std::span<const float> rows,
                                   int64_t features,
                                   const FeatureOptions& options = {});

/// Smallest and largest z of these rows, which is the smallest range that can be declared for them.
/// Throws: DataError if rows do not hold whole rows of these features, or a value is NaN or
/// infinite; QuantError like validate().
Range feature_range(std::span<const float> rows, const integer::InputFeatures& features);

}  // namespace quantrain
