#include "framework/data/features.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/arithmetic/nearest_rank.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/data/feature_columns.hpp"

namespace quantrain {
namespace {

using integer::InputFeatures;

constexpr const char* kFeatures = "features";

}  // namespace

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

void check_names(const std::vector<std::string>& names, int64_t features) {
  if (!names.empty() && std::ssize(names) != features)
    throw DataError(kFeatures, names.size(), " names for ", features, " features");
}

std::vector<float> feature_column(std::span<const float> rows,
                                  int64_t f,
                                  int64_t width,
                                  const InputFeatures& features) {
  std::vector<float> column;
  const auto step = static_cast<size_t>(width);
  column.reserve(rows.size() / step);
  for (size_t i = static_cast<size_t>(f); i < rows.size(); i += step) {
    const float z = integer::feature_value(rows, i, features);
    if (!std::isfinite(z)) {
      throw DataError(kFeatures,
                      "value ",
                      rows[i],
                      " of feature ",
                      f,
                      " is ",
                      z,
                      " after the feature's offset and scale");
    }
    column.push_back(z);
  }
  return column;
}

namespace {

void check_percentiles(Percentiles p) {
  if (p.low >= 0.0 && p.low < p.high && p.high <= 100.0) return;
  throw DataError(
      kFeatures, "percentiles must be in order and in [0, 100], got ", p.low, " and ", p.high);
}

/// The values at the percentiles. Reorders the column.
Range at_percentiles(std::vector<float>& column, Percentiles p) {
  const auto value = [&](double percent) {
    const auto at = column.begin() + nearest_rank(percent, std::ssize(column));
    std::nth_element(column.begin(), at, column.end());
    return *at;
  };
  const float low = value(p.low);
  return {low, value(p.high)};
}

/// Mean and standard deviation.
std::pair<float, float> mean_and_std(std::span<const float> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0.0;
  for (const float x : values) mean += double{x};
  mean /= count;
  double variance = 0.0;
  for (const float x : values) variance += (double{x} - mean) * (double{x} - mean);
  return {static_cast<float>(mean), static_cast<float>(std::sqrt(variance / count))};
}

/// Smallest and largest value of each feature.
std::vector<Range> extremes(std::span<const float> rows,
                            int64_t features,
                            const FeatureOptions& options) {
  check_feature_rows(rows, features);
  const auto width = static_cast<size_t>(features);
  check_names(options.names, features);
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

InputFeatures fit_percentiles(std::span<const float> rows,
                              int64_t features,
                              const FeatureOptions& options,
                              Percentiles percentiles) {
  const DefaultRounding rounding;
  check_percentiles(percentiles);
  const std::vector<Range> ranges = extremes(rows, features, options);
  InputFeatures fitted;
  for (int64_t f = 0; f < features; ++f) {
    const Range& all = ranges[static_cast<size_t>(f)];
    std::vector<float> column = feature_column(rows, f, features);
    const Range middle = at_percentiles(column, percentiles);
    float offset = middle.min;
    float scale = std::max(all.max - middle.min, middle.min - all.min);
    if (middle.min < middle.max) {
      for (float& x : column) x = std::clamp(x, middle.min, middle.max);
      std::tie(offset, scale) = mean_and_std(column);
    }
    fitted.offset.push_back(offset);
    fitted.scale.push_back(scale > 0.0f && std::isfinite(scale) ? scale : 1.0f);
  }
  return fitted;
}

Range percentile_range(std::span<const float> rows,
                       const InputFeatures& features,
                       Percentiles percentiles,
                       float room) {
  const DefaultRounding rounding;
  check_percentiles(percentiles);
  if (!(room >= 0.0f && room <= 1e6f))
    throw DataError(kFeatures, "room is ", room, ", expected a number in [0, 1e6]");
  check_feature_rows(rows, features.size());
  validate(features, features.size(), kFeatures);
  Range range;
  for (int64_t f = 0; f < features.size(); ++f) {
    std::vector<float> column = feature_column(rows, f, features.size(), features);
    const auto [least, most] = std::minmax_element(column.begin(), column.end());
    Range own{*least, *most};
    const Range middle = at_percentiles(column, percentiles);
    const float margin = room * (middle.max - middle.min);
    if (middle.min < middle.max)
      own = {std::max(own.min, middle.min - margin), std::min(own.max, middle.max + margin)};
    if (f == 0) range = own;
    range = {std::min(range.min, own.min), std::max(range.max, own.max)};
  }
  return range;
}

std::vector<float> scaled(std::span<const float> rows, const InputFeatures& features) {
  const DefaultRounding rounding;
  check_feature_rows(rows, features.size());
  validate(features, features.size(), kFeatures);
  std::vector<float> z(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) z[i] = integer::feature_value(rows, i, features);
  return z;
}

}  // namespace quantrain
