#include "quant/observers/mean_std.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

namespace quantrain::quant {
namespace {

// For each channel, the sum of term(channel, x) over its values x. The sizes of the blocks depend
// only on the tensor's shape, and the blocks' sums are added in order. So any number of threads
// gives the same bits.
template <class Term>
std::vector<double> channel_sums(
    const float* x, int64_t n, int64_t channels, int64_t inner, const Term& term) {
  constexpr int64_t kSumBlock = 1 << 14;
  const int64_t row = channels == 1 ? 1 : channels * inner;  // period of the channels, in elements
  const int64_t grain = std::max<int64_t>(1, kSumBlock / row) * row;
  const auto width = static_cast<size_t>(channels);
  std::vector<double> partial(static_cast<size_t>((n + grain - 1) / grain) * width);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    double* sums = partial.data() + static_cast<size_t>(begin / grain) * width;
    for (int64_t i = begin; i < end;) {
      const int64_t c = channels == 1 ? 0 : i / inner % channels;
      const int64_t stop = channels == 1 ? end : i + inner;
      double sum = 0.0;
      for (; i < stop; ++i) sum += term(c, static_cast<double>(x[i]));
      sums[c] += sum;
    }
  });
  std::vector<double> total(width);
  for (size_t i = 0; i < partial.size(); ++i) total[i % width] += partial[i];
  return total;
}

}  // namespace

std::unique_ptr<Observer> MeanStdOptions::make(ObserverShape shape) const {
  return std::make_unique<MeanStdObserver>(*this, std::move(shape));
}

MeanStdObserver::MeanStdObserver(const MeanStdOptions& options, ObserverShape shape)
    : RangeObserver(std::move(shape)), options_(options) {
  if (!(options.k > 0.0f) || !std::isfinite(options.k)) {
    throw QuantError("mean_std observer", "k must be positive and finite, got ", options.k);
  }
}

void MeanStdObserver::batch_ranges(const Batch& batch, std::span<Range> ranges) const {
  const double count = static_cast<double>(batch.n / batch.channels);
  std::vector<double> mean = channel_sums(
      batch.x, batch.n, batch.channels, batch.inner, [](int64_t, double x) { return x; });
  for (double& m : mean) m /= count;
  const std::vector<double> squares =
      channel_sums(batch.x, batch.n, batch.channels, batch.inner, [&](int64_t c, double x) {
        const double distance = x - mean[static_cast<size_t>(c)];
        return distance * distance;
      });
  for (size_t c = 0; c < ranges.size(); ++c) {
    const double reach = static_cast<double>(options_.k) * std::sqrt(squares[c] / count);
    ranges[c] = {static_cast<float>(mean[c] - reach), static_cast<float>(mean[c] + reach)};
  }
}

}  // namespace quantrain::quant
