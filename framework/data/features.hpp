#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/integer/input_encoding.hpp"

// Offsets and scales that bring features of different magnitudes to one range, found on training
// rows and declared to Dataset::from_floats or SampleArray::encoded, for the test rows too, which
// may lie outside (Outside::kSaturate). The data carry them into the network, and they are saved
// with it.   docs/quantization.md (20)
namespace quantrain {

/// What becomes of a feature that is the same in all rows. It teaches nothing, and no scale can be
/// found for other values, which a deployed program may see.
enum class ConstantFeature {
  kRefuse,  ///< an error that names it
  kKeep,    ///< scale 1, as scikit-learn's StandardScaler and MinMaxScaler do
};

struct FeatureOptions {
  ConstantFeature constant = ConstantFeature::kRefuse;
  std::span<const std::string> names = {};  ///< of the features, for messages
};

/// z has mean 0 and standard deviation 1: offset = mean, scale = sqrt(mean of (x - mean)^2), in
/// double.
/// Shapes: rows [..., features]  ->  features offsets and scales.
/// Throws: DataError if there is no row, the last one is not whole, a value is NaN or infinite, or
/// a feature never varies and that is refused.
integer::InputFeatures fit_mean_std(std::span<const float> rows,
                                    int64_t features,
                                    const FeatureOptions& options = {});
/// z lies in [0, 1]: offset = min, scale = max - min.
/// Throws: DataError as fit_mean_std, also if the difference is infinite.
integer::InputFeatures fit_min_max(std::span<const float> rows,
                                   int64_t features,
                                   const FeatureOptions& options = {});

/// Smallest and largest z of these rows: the least range that can be declared for them.
/// Throws: DataError as fit_mean_std, for as many features as there are here; QuantError as
/// validate().
Range feature_range(std::span<const float> rows, const integer::InputFeatures& features);

}  // namespace quantrain
