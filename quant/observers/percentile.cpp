#include "quant/observers/percentile.hpp"

#include <algorithm>

#include "framework/arithmetic/nearest_rank.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

namespace quantrain::quant {
std::unique_ptr<Observer> PercentileOptions::make(ObserverShape shape) const {
  return std::make_unique<PercentileObserver>(*this, std::move(shape));
}

PercentileObserver::PercentileObserver(const PercentileOptions& options, ObserverShape shape)
    : RangeObserver(std::move(shape)), options_(options) {
  const auto [low, high] = options;
  if (!(low >= 0.0 && low < high && high <= 100.0)) {
    throw QuantError("percentile observer",
                     "percentiles must be in order and in [0, 100], got ",
                     low,
                     " and ",
                     high);
  }
}

void PercentileObserver::batch_ranges(const Batch& batch, std::span<Range> ranges) const {
  const int64_t count = batch.n / batch.channels;
  const int64_t low = nearest_rank(options_.low, count);
  const int64_t high = nearest_rank(options_.high, count);
  parallel_for(batch.channels, 1, [&](int64_t begin, int64_t end) {
    Buffer<float> values(count);
    for (int64_t c = begin; c < end; ++c) {
      float* next = values.data();
      for (int64_t i = c * batch.inner; i < batch.n; i += batch.channels * batch.inner) {
        next = std::copy_n(batch.x + i, batch.inner, next);
      }
      std::nth_element(values.begin(), values.begin() + low, values.end());
      if (high > low)
        std::nth_element(values.begin() + low + 1, values.begin() + high, values.end());
      ranges[static_cast<size_t>(c)] = {values[low], values[high]};
    }
  });
}

}  // namespace quantrain::quant
