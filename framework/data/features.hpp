#pragma once

#include <cstdint>
#include <span>

#include "framework/integer/input_encoding.hpp"

// Offsets and scales that bring features of different magnitudes to one range, found on training
// rows and declared to Dataset::from_floats, for the test rows too.   docs/quantization.md (20)
namespace quantrain {

/// z has mean 0 and standard deviation 1: offset = mean, scale = sqrt(mean of (x - mean)^2), in
/// double. A feature that is the same everywhere gets scale 1.
/// Shapes: rows [..., features]  ->  features offsets and scales.
/// Throws: DataError if there is no row, the last one is not whole, or a value is NaN or infinite.
integer::InputFeatures fit_mean_std(std::span<const float> rows, int64_t features);
/// z lies in [0, 1]: offset = min, scale = max - min, and 1 where that is 0.
/// Throws: DataError as fit_mean_std, also if the difference is infinite.
integer::InputFeatures fit_min_max(std::span<const float> rows, int64_t features);

/// Smallest and largest z of these rows: the least range that can be declared for them.
/// Throws: DataError as fit_mean_std, for as many features as there are here; QuantError as
/// validate().
Range feature_range(std::span<const float> rows, const integer::InputFeatures& features);

}  // namespace quantrain
