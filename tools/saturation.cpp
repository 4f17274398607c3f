// Tells that values of the data have no code of their own.
#include <algorithm>

#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "tools/data.hpp"

namespace quantrain::tools {
namespace {

constexpr double kWorthSaying = 0.01;  // of all values
constexpr int64_t kMostRows = 4096;

/// The share of the values that lie more than a code outside of what the codes mean.
double saturating(const Samples& samples) {
  const QParams& params = *samples.reading.params;
  const Range range = params.float_range();
  const float low = range.min - params.scale[0];
  const float high = range.max + params.scale[0];
  int64_t count = 0;
  int64_t all = 0;
  for (const Batch& batch :
       samples.loader(Form::kFloats, spread(samples.data->size, kMostRows), {.batch = 256})) {
    const Floats z = batch.input.floats();
    const int64_t n = batch.input.elements();
    count += std::count_if(z.data(), z.data() + n, [&](float x) { return x < low || x > high; });
    all += n;
  }
  return all == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(all);
}

}  // namespace

void warn_of_saturation(const Samples& samples, Report& report, const std::string& model) {
  const double share = saturating(samples);
  if (share <= kWorthSaying) return;
  const Range input = samples.reading.input;
  TextStream text;
  text << decimals(100.0 * share, 0) << " % of the input's values saturate: " << model << " takes "
       << input.min << " to " << input.max;
  report.warning(std::move(text).str());
}

void warn_of_saturation(const Parts& parts, Report& report) {
  warn_of_saturation(parts.training, report);
  if (parts.test.data != parts.training.data) warn_of_saturation(parts.test, report);
}

}  // namespace quantrain::tools
