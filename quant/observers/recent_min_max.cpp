#include "quant/observers/recent_min_max.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "framework/core/error.hpp"

namespace quantrain::quant {
namespace {

Range range_at(const Tensor& ranges, size_t channel) {
  const float* const x = ranges.data() + 2 * channel;
  return {x[0], x[1]};
}

void set_range(Tensor& ranges, size_t channel, Range range) {
  float* const x = ranges.mutable_data() + 2 * channel;
  x[0] = range.min;
  x[1] = range.max;
}

Range covering(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

}  // namespace

std::unique_ptr<Observer> RecentMinMaxOptions::make(ObserverShape shape) const {
  return std::make_unique<RecentMinMaxObserver>(*this, std::move(shape));
}

RecentMinMaxObserver::RecentMinMaxObserver(const RecentMinMaxOptions& options, ObserverShape shape)
    : Observer(std::move(shape)), options_(options) {
  if (options.batches < 1) {
    throw QuantError(
        "recent_min_max observer", "batches must be at least 1, got ", options.batches);
  }
  latest_ = add_state("latest", {channels(), 2});
  earlier_ = add_state("earlier", {channels(), 2});
}

void RecentMinMaxObserver::accumulate(const Batch& /*batch*/, std::span<const Range> extremes) {
  const auto before = static_cast<uint64_t>(count());
  const auto window = static_cast<uint64_t>(options_.batches);
  const bool begins = before % window == 0 && std::has_single_bit(before / window);
  for (size_t c = 0; c < extremes.size(); ++c) {
    if (before == 0) {
      set_range(earlier_, c, extremes[c]);
      set_range(latest_, c, extremes[c]);
    } else if (begins) {
      set_range(earlier_, c, range_at(latest_, c));
      set_range(latest_, c, extremes[c]);
    } else {
      set_range(latest_, c, covering(range_at(latest_, c), extremes[c]));
    }
  }
}

void RecentMinMaxObserver::join_shard(const std::vector<NamedState>& /*before*/,
                                      const std::vector<NamedState>& other) {
  cover(latest_, other[1].tensor);
  cover(earlier_, other[2].tensor);
}

void RecentMinMaxObserver::check_state() const {
  for (const auto& [name, window] : {std::pair{"latest", &latest_}, {"earlier", &earlier_}}) {
    for (size_t c = 0; c < static_cast<size_t>(channels()); ++c) {
      const Range range = range_at(*window, c);
      if (std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max) continue;
      throw DataError(where(),
                      kind(),
                      " observer: state \"",
                      name,
                      "\" is not finite or not in order: channel ",
                      c,
                      " has range [",
                      range.min,
                      ", ",
                      range.max,
                      "]");
    }
  }
}

std::vector<Range> RecentMinMaxObserver::choose_ranges(const QType& /*type*/,
                                                       QScheme /*scheme*/) const {
  std::vector<Range> ranges;
  for (size_t c = 0; c < static_cast<size_t>(channels()); ++c)
    ranges.push_back(covering(range_at(earlier_, c), range_at(latest_, c)));
  return ranges;
}

}  // namespace quantrain::quant
