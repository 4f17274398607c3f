#include "framework/data/features.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

using integer::InputFeatures;

constexpr const char* kFeatures = "features";

void check_feature_rows(std::span<const float> rows, int64_t features) {
  if (features < 1)
    throw DataError(kFeatures, "rows have ", features, " features, expected at least 1");
  if (rows.empty() || rows.size() % static_cast<size_t>(features) != 0) {
    throw DataError(kFeatures,
                    rows.size(),
                    " values do not form rows of ",
                    features,
                    " features: expected a positive multiple of ",
                    features);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(rows[i])) continue;
    const auto at = static_cast<int64_t>(i);
    throw DataError(kFeatures,
                    "value ",
                    rows[i],
                    " at ",
                    i,
                    " (row ",
                    at / features,
                    ", feature ",
                    at % features,
                    ") is not finite");
  }
}

/// Smallest and largest value of each feature.
std::vector<Range> extremes(std::span<const float> rows,
                            int64_t features,
                            const FeatureOptions& options) {
  check_feature_rows(rows, features);
  const auto width = static_cast<size_t>(features);
  if (!options.names.empty() && options.names.size() != width)
    throw DataError(kFeatures, options.names.size(), " names for ", features, " features");
  std::vector<Range> ranges;
  for (size_t f = 0; f < width; ++f) ranges.push_back({rows[f], rows[f]});
  for (size_t i = 0; i < rows.size(); ++i) {
    Range& range = ranges[i % width];
    range = {std::min(range.min, rows[i]), std::max(range.max, rows[i])};
  }
  if (options.constant == ConstantFeature::kKeep) return ranges;
  for (size_t f = 0; f < width; ++f) {
    if (ranges[f].min < ranges[f].max) continue;
    throw DataError(
        kFeatures,
        "feature ",
        f,
        options.names.empty() ? "" : " (" + options.names[f] + ")",
        " is ",
        ranges[f].min,
        " in all ",
        rows.size() / width,
        " rows: leave the feature out, or keep it with scale 1 (ConstantFeature::kKeep)");
  }
  return ranges;
}

}  // namespace

InputFeatures fit_mean_std(std::span<const float> rows,
                           int64_t features,
                           const FeatureOptions& options) {
  const DefaultRounding rounding;
  const std::vector<Range> ranges = extremes(rows, features, options);
  const auto width = static_cast<size_t>(features);
  const double count = static_cast<double>(rows.size() / width);
  std::vector<double> mean(width, 0.0);
  std::vector<double> variance(width, 0.0);
  for (size_t i = 0; i < rows.size(); ++i) mean[i % width] += double{rows[i]};
  for (double& sum : mean) sum /= count;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double difference = double{rows[i]} - mean[i % width];
    variance[i % width] += difference * difference;
  }
  InputFeatures fitted;
  for (size_t f = 0; f < width; ++f) {
    const auto scale = static_cast<float>(std::sqrt(variance[f] / count));
    const bool varies = ranges[f].min < ranges[f].max && scale > 0.0f;
    fitted.offset.push_back(static_cast<float>(mean[f]));
    fitted.scale.push_back(varies ? scale : 1.0f);
  }
  return fitted;
}

InputFeatures fit_min_max(std::span<const float> rows,
                          int64_t features,
                          const FeatureOptions& options) {
  const DefaultRounding rounding;
  InputFeatures fitted;
  for (const Range& range : extremes(rows, features, options)) {
    const float scale = range.max - range.min;
    if (!std::isfinite(scale)) {
      throw DataError(kFeatures,
                      "feature ",
                      fitted.size(),
                      " reaches from ",
                      range.min,
                      " to ",
                      range.max,
                      ": max - min is beyond the range of float32");
    }
    fitted.offset.push_back(range.min);
    fitted.scale.push_back(scale > 0.0f ? scale : 1.0f);
  }
  return fitted;
}

Range feature_range(std::span<const float> rows, const InputFeatures& features) {
  check_feature_rows(rows, features.size());
  validate(features, features.size(), kFeatures);
  const auto z = [&](size_t i) { return integer::feature_value(rows, i, features); };
  Range range{z(0), z(0)};
  for (size_t i = 1; i < rows.size(); ++i)
    range = {std::min(range.min, z(i)), std::max(range.max, z(i))};
  return range;
}

}  // namespace quantrain
