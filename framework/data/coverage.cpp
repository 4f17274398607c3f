#include "framework/data/coverage.hpp"

#include <algorithm>
#include <ostream>

#include "framework/arithmetic/nearest_rank.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "framework/data/feature_columns.hpp"

namespace quantrain {
namespace {

constexpr const char* kCoverage = "coverage";
constexpr Percentiles kMiddle{0.5, 99.5};
constexpr double kMostSaturated = 0.01;

FeatureCoverage cover(std::vector<float> z, const QParams& params, std::string name) {
  std::sort(z.begin(), z.end());
  const auto code = [&](float value) {
    return quantize(value, params.scale[0], params.zero_point[0], 0, 255);
  };
  const auto inside = [&](float value) {
    return gradient_passes(value, params.scale[0], params.zero_point[0], 0, 255);
  };
  FeatureCoverage result{.name = std::move(name)};
  const auto saturated = std::count_if(z.begin(), z.end(), [&](float v) { return !inside(v); });
  result.saturated = static_cast<double>(saturated) / static_cast<double>(z.size());
  const auto first = static_cast<size_t>(nearest_rank(kMiddle.low, std::ssize(z)));
  const auto last = static_cast<size_t>(nearest_rank(kMiddle.high, std::ssize(z)));
  for (size_t i = first; i <= last; ++i) {
    if (i > first && z[i] == z[i - 1]) continue;
    ++result.values;
    if (i == first || code(z[i]) != code(z[i - 1])) ++result.codes;
  }
  return result;
}

}  // namespace

InputCoverage coverage(std::span<const float> rows,
                       Range range,
                       const integer::InputFeatures& features,
                       const std::vector<std::string>& names) {
  const DefaultRounding rounding;
  const QParams params = integer::input_params(range, kCoverage);
  const int64_t width = features.empty() ? 1 : features.size();
  check_feature_rows(rows, width);
  check_names(names, width);
  validate(features, width, kCoverage);
  InputCoverage result{.range = range, .features = {}};
  for (int64_t f = 0; f < width; ++f) {
    const auto at = static_cast<size_t>(f);
    result.features.push_back(cover(feature_column(rows, f, width, features),
                                    params,
                                    names.empty() ? std::to_string(f) : names[at]));
  }
  return result;
}

std::vector<std::string> InputCoverage::warnings() const {
  std::vector<std::string> all;
  for (const FeatureCoverage& feature : features) {
    if (feature.codes < integer::kLeastCodes && feature.codes < feature.values) {
      TextStream text;
      text << "feature " << feature.name << ": 99 % of its values get only " << feature.codes
           << " of the 256 codes, although " << feature.values
           << " of them differ. Rare values far away may widen the range: take offsets and scales "
              "from fit_percentiles(), the range from percentile_range(), and pass "
              "Outside::kSaturate";
      all.push_back(text.str());
    }
    if (feature.saturated > kMostSaturated) {
      TextStream text;
      text << "feature " << feature.name << ": " << decimals(100.0 * feature.saturated, 1)
           << " % of its values saturate. Declare a wider range, or offset and scale of the "
              "feature that fit these values";
      all.push_back(text.str());
    }
  }
  return all;
}

std::ostream& operator<<(std::ostream& stream, const InputCoverage& coverage) {
  stream << "codes of the input's range [" << coverage.range.min << ", " << coverage.range.max
         << "]\n";
  TextTable table("lrrr");
  table.add({"feature", "values", "codes", "saturated"});
  for (const FeatureCoverage& feature : coverage.features) {
    table.add({feature.name,
               std::to_string(feature.values),
               std::to_string(feature.codes),
               decimals(100.0 * feature.saturated, 2) + " %"});
  }
  stream << table;
  for (const std::string& warning : coverage.warnings()) stream << "warning: " << warning << '\n';
  return stream;
}

}  // namespace quantrain
