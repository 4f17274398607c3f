#include "quant/analysis/target_errors.hpp"

#include <algorithm>
#include <cmath>

#include "quant/analysis/batch_part.hpp"

namespace quantrain::quant {
namespace {

constexpr size_t kLargestShare = 100;  // one row of so many

double squared(float a, float b) {
  const double difference = static_cast<double>(a) - static_cast<double>(b);
  return difference * difference;
}

double root_of_mean(double sum, size_t n) {
  return n == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(n));
}

}  // namespace

void TargetErrors::add(const Tensor& target,
                       const Tensor& floats,
                       const Tensor& integers,
                       const std::vector<bool>& clipped) {
  const int64_t channels = last_extent(floats.shape());
  const int64_t samples = floats.dim(0);
  const int64_t positions = target.elements() / samples / channels;
  const bool keeps_rows = channels <= kMostChannels;
  channels_.resize(static_cast<size_t>(channels));
  const Floats t = target.floats();
  const Floats a = floats.floats();
  const Floats b = integers.floats();
  for (int64_t c = 0; c < channels; ++c) {
    Channel& channel = channels_[static_cast<size_t>(c)];
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t first = i * positions * channels + c;
      Row row{.least = t[first],
              .most = t[first],
              .in_float = 0.0,
              .in_integers = 0.0,
              .clipped = clipped[static_cast<size_t>(i)]};
      for (int64_t p = 0; p < positions; ++p) {
        const int64_t at = first + p * channels;
        row.least = std::min(row.least, t[at]);
        row.most = std::max(row.most, t[at]);
        row.in_float += squared(a[at], t[at]);
        row.in_integers += squared(b[at], t[at]);
      }
      channel.in_float += row.in_float;
      channel.in_integers += row.in_integers;
      row.in_float /= static_cast<double>(positions);
      row.in_integers /= static_cast<double>(positions);
      if (keeps_rows) channel.rows.push_back(row);
    }
  }
  values_ += samples * positions;
}

LargestTargets TargetErrors::largest(std::vector<Row> rows) {
  std::vector<float> middles;
  for (const Row& row : rows) middles.push_back(0.5f * row.least + 0.5f * row.most);
  std::sort(middles.begin(), middles.end());
  const float median = middles[middles.size() / 2];
  const auto distance = [&](const Row& row) {
    return std::max(row.most - median, median - row.least);
  };
  const size_t n = (rows.size() + kLargestShare - 1) / kLargestShare;
  std::partial_sort(rows.begin(),
                    rows.begin() + static_cast<ptrdiff_t>(n),
                    rows.end(),
                    [&](const Row& x, const Row& y) { return distance(x) > distance(y); });
  LargestTargets result{.rows = static_cast<int64_t>(n), .targets = {rows[0].least, rows[0].most}};
  double squares = 0.0;
  double in_float = 0.0;
  double in_integers = 0.0;
  for (size_t i = 0; i < n; ++i) {
    result.targets.min = std::min(result.targets.min, rows[i].least);
    result.targets.max = std::max(result.targets.max, rows[i].most);
    squares += static_cast<double>(distance(rows[i])) * static_cast<double>(distance(rows[i]));
    in_float += rows[i].in_float;
    in_integers += rows[i].in_integers;
  }
  result.distance = root_of_mean(squares, n);
  result.rmse_float = root_of_mean(in_float, n);
  result.rmse_integers = root_of_mean(in_integers, n);
  return result;
}

ClippedRows TargetErrors::clipped(const std::vector<Row>& rows) {
  ClippedRows result;
  double own = 0.0;
  double others = 0.0;
  for (const Row& row : rows) {
    result.rows += row.clipped ? 1 : 0;
    (row.clipped ? own : others) += row.in_float;
  }
  const auto n = static_cast<size_t>(result.rows);
  result.rmse_float = root_of_mean(own, n);
  result.rmse_float_others = root_of_mean(others, rows.size() - n);
  return result;
}

void TargetErrors::describe(std::vector<OutputDiagnosis>& channels) const {
  for (size_t c = 0; c < std::min(channels.size(), channels_.size()); ++c) {
    const auto n = static_cast<size_t>(values_);
    channels[c].target_rmse_float = root_of_mean(channels_[c].in_float, n);
    channels[c].target_rmse_integers = root_of_mean(channels_[c].in_integers, n);
    if (channels_[c].rows.empty()) continue;
    channels[c].largest_targets = largest(channels_[c].rows);
    channels[c].clipped_rows = clipped(channels_[c].rows);
  }
}

}  // namespace quantrain::quant
