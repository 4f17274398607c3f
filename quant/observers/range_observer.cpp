#include "quant/observers/range_observer.hpp"

#include <algorithm>

#include "framework/core/error.hpp"

namespace quantrain::quant {

RangeObserver::RangeObserver(ObserverShape shape) : Observer(std::move(shape)) {
  range_ = add_state("range", {channels(), 2});
}

Range RangeObserver::join(Range so_far, Range batch) const {
  return {std::min(so_far.min, batch.min), std::max(so_far.max, batch.max)};
}

void RangeObserver::accumulate(const Batch& batch, std::span<const Range> extremes) {
  std::vector<Range> ranges(extremes.begin(), extremes.end());
  batch_ranges(batch, ranges);
  check_finite(ranges, "the batch's range overflows to");
  if (count() > 0) {
    const float* so_far = range_.data();
    for (Range& range : ranges) {
      range = join({so_far[0], so_far[1]}, range);
      so_far += 2;
    }
    check_finite(ranges, "the running range overflows to");
  }
  float* y = range_.mutable_data();
  for (const Range& range : ranges) {
    *y++ = range.min;
    *y++ = range.max;
  }
}

void RangeObserver::join_shard(const std::vector<NamedState>& /*before*/,
                               const std::vector<NamedState>& other) {
  cover(range_, other[1].tensor);
}

void RangeObserver::check_state() const {
  const std::vector<Range> ranges = choose_ranges({}, {});
  check_finite(ranges, "state \"range\" holds a");
  for (size_t c = 0; c < ranges.size(); ++c) {
    if (ranges[c].min > ranges[c].max) {
      throw DataError(where(),
                      kind(),
                      " observer: state \"range\" is out of order: channel ",
                      c,
                      " has range [",
                      ranges[c].min,
                      ", ",
                      ranges[c].max,
                      "]");
    }
  }
}

std::vector<Range> RangeObserver::choose_ranges(const QType& /*type*/, QScheme /*scheme*/) const {
  std::vector<Range> ranges;
  const float* const x = range_.data();
  for (int64_t c = 0; c < channels(); ++c) ranges.push_back({x[2 * c], x[2 * c + 1]});
  return ranges;
}

Range RangeObserver::range(size_t channel) const {
  const std::vector<Range> all = ranges({}, {});
  if (channel >= all.size()) {
    throw QuantError(where(), kind(), " observer: no channel ", channel, ", it has ", all.size());
  }
  return all[channel];
}

}  // namespace quantrain::quant
