#include "quant/analysis/tally.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

// Fine enough that 99 % of the values fill many bins, even if a few spikes make the range a hundred
// times wider.
constexpr int kBins = 8192;
constexpr int kParts = 48;  // of the histogram in the report
constexpr double kOutsideShare =
    0.005;  // of the values, on each side of ValueDistribution::central

double square(double x) { return x * x; }

void extend(Range& range, float value, bool first) {
  range =
      first ? Range{value, value} : Range{std::min(range.min, value), std::max(range.max, value)};
}

}  // namespace

double largest_to_median(std::vector<double> values) {
  std::erase(values, 0.0);
  if (values.empty()) return 1.0;
  std::sort(values.begin(), values.end());
  return values.back() / values[(values.size() - 1) / 2];
}

void SignalNoise::add(int64_t n, const float* values, const float* changed) {
  for (int64_t i = 0; i < n; ++i) {
    signal += square(values[i]);
    noise += square(static_cast<double>(changed[i]) - static_cast<double>(values[i]));
  }
}

double SignalNoise::decibels() const {
  if (noise == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

Tally::Tally(std::string name, int64_t channels)
    : name_(std::move(name)),
      channels_(static_cast<size_t>(channels)),
      histogram_(std::make_unique<HistogramObserver>(
          HistogramOptions{.bins = kBins},
          ObserverShape{.axis = -1, .channels = 1, .name = name_})) {}

void Tally::add(const Tensor& floats, const Tensor& simulated, const Codes* codes) {
  histogram_->observe(floats);  // refuses NaN and infinity
  const Floats x = floats.floats();
  const Floats y = simulated.floats();
  const int64_t n = floats.elements();
  const size_t channels = channels_.size();
  for (int64_t i = 0; i < n; ++i) {
    Channel& channel = channels_[static_cast<size_t>(i) % channels];
    const double value = x[i];
    const double error = std::abs(static_cast<double>(y[i]) - value);
    extend(channel.floats, x[i], channel.values == 0);
    extend(channel.integers, y[i], channel.values == 0);
    ++channel.values;
    channel.sum += value;
    channel.squares += square(value);
    channel.noise += square(error);
    channel.max_error = std::max(channel.max_error, error);
  }
  has_floats_ = true;
  if (codes == nullptr || codes->params.per_channel()) return;
  add_codes(*codes, n);
  add_range_errors(x.data(), n, codes->params);
}

void Tally::add(const Tensor& simulated, const Codes* codes) {
  const Floats y = simulated.floats();
  for (int64_t i = 0; i < simulated.elements(); ++i) {
    Channel& channel = channels_[static_cast<size_t>(i) % channels_.size()];
    extend(channel.integers, y[i], channel.values == 0);
    ++channel.values;
  }
  if (codes != nullptr) add_codes(*codes, simulated.elements());
}

void Tally::add_codes(const Codes& codes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) ++codes_[codes.u8()[i]];
}

void Tally::add_range_errors(const float* values, int64_t n, const QParams& params) {
  const float scale = params.scale[0];
  const int32_t zero_point = params.zero_point[0];
  const int32_t qmin = params.type.qmin();
  const int32_t qmax = params.type.qmax();
  for (int64_t i = 0; i < n; ++i) {
    const float code = unclamped_code(values[i], scale, zero_point);
    const float nearest =
        dequantize(quantize(values[i], scale, zero_point, qmin, qmax), scale, zero_point);
    const double error = square(static_cast<double>(nearest) - static_cast<double>(values[i]));
    const bool below = code < static_cast<float>(qmin);
    const bool above = code > static_cast<float>(qmax);
    below_ += below ? 1 : 0;
    above_ += above ? 1 : 0;
    range_error_ += error;
    if (below || above) saturation_error_ += error;
  }
}

double Tally::spread(const Channel& channel) const {
  const auto n = static_cast<double>(channel.values);
  return std::sqrt(std::max(0.0, channel.squares / n - square(channel.sum / n)));
}

ValueDistribution Tally::distribution() const {
  const std::vector<NamedState>& state = histogram_->state();
  const auto entry = [&](const char* name) -> const NamedState& {
    return *std::find_if(
        state.begin(), state.end(), [&](const NamedState& s) { return s.name == name; });
  };
  const float* const range = entry("range").tensor.data();
  const float* const grid = entry("grid").tensor.data();
  const IntegerBuffer& histogram = entry("histogram").integers;
  std::vector<int64_t> counts(histogram.values().begin(), histogram.values().end());

  ValueDistribution result;
  result.range = {range[0], range[1]};
  for (const Channel& channel : channels_) {
    result.values += channel.values;
    result.rms += channel.squares;
  }
  result.rms = std::sqrt(result.rms / static_cast<double>(result.values));
  result.central = result.range;
  if (!(result.range.max > result.range.min)) return result;

  const auto first = static_cast<double>(grid[0]);
  const auto width = static_cast<double>(grid[1]);
  int64_t counted = 0;
  for (const int64_t count : counts) counted += count;
  const auto zero = std::min(static_cast<size_t>(-first), counts.size() - 1);
  counts[zero] += result.values - counted;

  const auto low = [&](size_t i) { return (first + static_cast<double>(i)) * width; };
  const double outside = kOutsideShare * static_cast<double>(result.values);
  int64_t before = 0;
  bool found_low = false;
  bool found_high = false;
  const double span = static_cast<double>(result.range.max) - static_cast<double>(result.range.min);
  result.counts.assign(kParts, 0);
  for (size_t i = 0; i < counts.size(); ++i) {
    before += counts[i];
    if (!found_low && static_cast<double>(before) > outside) {
      result.central.min = std::max(result.range.min, static_cast<float>(low(i)));
      found_low = true;
    }
    if (!found_high && static_cast<double>(result.values - before) <= outside) {
      result.central.max = std::min(result.range.max, static_cast<float>(low(i + 1)));
      found_high = true;
    }
    const double centre = low(i) + 0.5 * width - static_cast<double>(result.range.min);
    const double part = std::clamp(centre / span * kParts, 0.0, kParts - 1.0);
    result.counts[static_cast<size_t>(part)] += counts[i];
  }
  return result;
}

void Tally::describe(LayerDiagnosis& row) const {
  row.channels = static_cast<int64_t>(channels_.size());
  std::vector<double> largest;
  double spread_squares = 0.0;
  double noise = 0.0;
  double signal = 0.0;
  int64_t values = 0;
  for (const Channel& channel : channels_) {
    if (channel.values == 0) continue;
    row.constant += channel.integers.min == channel.integers.max ? 1 : 0;
    values += channel.values;
    if (!has_floats_) continue;
    row.constant_float += channel.floats.min == channel.floats.max ? 1 : 0;
    row.channel_ranges.push_back(channel.floats);
    largest.push_back(static_cast<double>(std::max(-channel.floats.min, channel.floats.max)));
    noise += channel.noise;
    signal += channel.squares;
    spread_squares += square(spread(channel)) * static_cast<double>(channel.values);
    row.max_error = std::max(row.max_error, channel.max_error);
  }
  if (row.params) {
    row.codes = row.params->type.levels();
    row.codes_used =
        std::count_if(codes_.begin(), codes_.end(), [](int64_t count) { return count > 0; });
    const auto last = static_cast<size_t>(std::min<int64_t>(row.codes, 256) - 1);
    row.at_limits = static_cast<double>(codes_[0] + codes_[last]) / static_cast<double>(values);
  }
  if (!has_floats_) return;
  row.floats = distribution();
  row.snr_accumulated = SignalNoise{signal, noise}.decibels();
  row.rmse = std::sqrt(noise / static_cast<double>(values));
  row.relative = noise == 0.0 ? 0.0 : std::sqrt(noise / spread_squares);
  row.saturated_low = static_cast<double>(below_) / static_cast<double>(values);
  row.saturated_high = static_cast<double>(above_) / static_cast<double>(values);
  row.saturation_share = range_error_ > 0.0 ? saturation_error_ / range_error_ : 0.0;
  row.range_rmse = std::sqrt(range_error_ / static_cast<double>(values));
  if (row.params) {
    const auto scale = static_cast<double>(row.params->scale[0]);
    const auto codes_in = [&](const Range& range) {
      const Range covered = row.params->float_range();
      const double low = std::max<double>(range.min, covered.min);
      const double high = std::min<double>(range.max, covered.max);
      return high < low ? 1.0 : 1.0 + (high - low) / scale;
    };
    row.codes_central = codes_in(row.floats.central);
    row.codes_range = codes_in(row.floats.range);
    if (row.is_input) row.codes_usual = codes_in(row.usual);
  }
  const auto biggest = std::max_element(largest.begin(), largest.end());
  row.largest_channel = biggest - largest.begin();
  row.largest_to_median = largest_to_median(largest);
}

std::vector<OutputDiagnosis> Tally::outputs(const std::string& name) const {
  std::vector<OutputDiagnosis> all;
  for (size_t c = 0; c < channels_.size(); ++c) {
    const Channel& channel = channels_[c];
    OutputDiagnosis output;
    output.name = channels_.size() == 1 ? name : name + '[' + std::to_string(c) + ']';
    if (has_floats_ && channel.values > 0) {
      output.spread = spread(channel);
      output.rmse = std::sqrt(channel.noise / static_cast<double>(channel.values));
      output.max_error = channel.max_error;
      output.relative = output.rmse == 0.0 ? 0.0 : output.rmse / output.spread;
    }
    all.push_back(std::move(output));
  }
  return all;
}

}  // namespace quantrain::quant
