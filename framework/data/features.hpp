#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/integer/input_encoding.hpp"

// Offsets and scales that bring features of different magnitudes to one range: a raw value x
// becomes z = (x - offset) / scale. Fit them on the training rows and give them to
// Dataset::from_floats or SampleArray::encoded. Use the same offsets and scales for the test rows.
// The z of test rows may lie outside of the declared range, so pass Outside::kSaturate for them. A
// prepared network copies offsets and scales from the data and saves them.
// docs/quantization.md (20)
namespace quantrain {

/// What to do with a feature that has the same value in all rows. Such a feature carries no
/// information. A deployed program may see other values, but the rows tell nothing about their
/// scale.
enum class ConstantFeature {
  kRefuse,  ///< throws an error that names the feature
  kKeep,    ///< scale 1, like scikit-learn's StandardScaler and MinMaxScaler
};

struct FeatureOptions {
  ConstantFeature constant = ConstantFeature::kRefuse;
  std::vector<std::string> names = {};  ///< names of the features, for messages
};

/// z has mean 0 and standard deviation 1: offset = mean, scale = sqrt(mean of (x - mean)^2), in
/// double.
/// Shapes: rows [..., features]  ->  offset and scale [features].
/// Throws: DataError if features < 1, there are no rows, the last row is incomplete, a value is NaN
/// or infinite, or the number of names is wrong; with ConstantFeature::kRefuse, DataError also if a
/// feature is constant.
integer::InputFeatures fit_mean_std(std::span<const float> rows,
                                    int64_t features,
                                    const FeatureOptions& options = {});
/// z lies in [0, 1]: offset = min, scale = max - min.
/// Throws: DataError like fit_mean_std, or if max - min is beyond the range of float32.
integer::InputFeatures fit_min_max(std::span<const float> rows,
                                   int64_t features,
                                   const FeatureOptions& options = {});

/// The values between two percentiles, low < high, by the nearest rank.   docs/quantization.md (14)
struct Percentiles {
  double low = 0.5;
  double high = 99.5;
};

/// Like fit_mean_std, but each feature's values are first clipped to its percentiles (winsorized
/// mean and deviation). So rare spikes move neither offset nor scale. If both percentiles of a
/// feature are the same value, offset is that value, and scale the largest distance from it.
/// Throws: DataError like fit_mean_std, or if the percentiles are not in order or not in [0, 100].
integer::InputFeatures fit_percentiles(std::span<const float> rows,
                                       int64_t features,
                                       const FeatureOptions& options = {},
                                       Percentiles percentiles = {});

/// Smallest and largest z of these rows: the smallest range that can be declared for them. Rare
/// spikes widen it: see percentile_range().
/// Throws: DataError if there are no rows or no features, the last row is incomplete, or a value is
/// NaN or infinite; QuantError if an offset or a scale is missing or invalid.
Range feature_range(std::span<const float> rows, const integer::InputFeatures& features);
/// The range to declare for rows that may have spikes, with Outside::kSaturate: the smallest range
/// that contains [low - room width, high + room width] of each feature, but nothing beyond its
/// smallest and largest z. low and high are z at the percentiles, and width = high - low. So
/// without spikes it is feature_range(), and with them the middle 99 % of a feature from
/// fit_percentiles() still get about half of the codes or more. A feature with width 0 counts with
/// all of its values.
/// Throws: DataError like feature_range(), if the percentiles are not in order or not in [0, 100],
/// or room is not in [0, 1e6]; QuantError like feature_range().
Range percentile_range(std::span<const float> rows,
                       const integer::InputFeatures& features,
                       Percentiles percentiles = {},
                       float room = 0.5f);

/// z of each value of these rows: what the network would see if floats had no codes. A network that
/// trains on them, in SampleArray::floats, shows what the codes of the input cost.
/// Throws: DataError and QuantError like feature_range().
std::vector<float> scaled(std::span<const float> rows, const integer::InputFeatures& features);

}  // namespace quantrain
