#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/data/features.hpp"

// What features.cpp and coverage.cpp share: checked rows, and one feature's values.
namespace quantrain {

/// Throws: DataError if features < 1, there are no rows, the last row is incomplete, or a value is
/// NaN or infinite.
void check_feature_rows(std::span<const float> rows, int64_t features);
/// Throws: DataError unless there are no names, or one for each feature.
void check_names(const std::vector<std::string>& names, int64_t features);

/// z of feature f in all rows; without features, the values themselves.
/// Throws: DataError if a z is NaN or infinite.
std::vector<float> feature_column(std::span<const float> rows,
                                  int64_t f,
                                  int64_t width,
                                  const integer::InputFeatures& features = {});

}  // namespace quantrain
