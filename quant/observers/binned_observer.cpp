#include "quant/observers/binned_observer.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"

namespace quantrain::quant {
namespace {

constexpr int kLeastExponent = -126;  // of the smallest normal float
// A task counts at most this many values of a channel. If 1/64 of the channel's rows hold more
// values, it counts at most that many rows instead. It always counts at least one row.
constexpr int64_t kBlock = 1 << 16;

// Index of the bin that x falls into; bin 0 begins at 0. The product is exact, because
// inverse_width is a power of two.
int64_t bin_of(float x, double inverse_width) {
  const double quotient = static_cast<double>(x) * inverse_width;
  const auto whole = static_cast<int64_t>(quotient);
  return whole - (quotient < static_cast<double>(whole) ? 1 : 0);
}

// Bins [first, end) of width 2^exponent.
struct Grid {
  int exponent = kLeastExponent;
  int64_t first = 0;
  int64_t end = 0;

  double inverse_width() const { return std::ldexp(1.0, -exponent); }
};

Grid grid_at(Range range, int exponent) {
  Grid grid{exponent, 0, 0};
  if (range.min < 0.0f) grid.first = bin_of(range.min, grid.inverse_width());
  if (range.max > 0.0f) grid.end = bin_of(range.max, grid.inverse_width()) + 1;
  return grid;
}

Grid smallest_grid(Range range, int64_t bins) {
  const double span =
      std::max(static_cast<double>(range.max), 0.0) - std::min(static_cast<double>(range.min), 0.0);
  // The search starts at the largest power of two that is at most span / bins: all smaller widths
  // are too narrow. The width doubles until `bins` bins cover the range.
  int exponent = kLeastExponent;
  if (span > 0.0) exponent = std::max(exponent, std::ilogb(span / static_cast<double>(bins)));
  Grid grid = grid_at(range, exponent);
  while (grid.end - grid.first > bins) grid = grid_at(range, ++exponent);
  return grid;
}

}  // namespace

float Bins::centre(size_t i) const {
  const double index = static_cast<double>(first + static_cast<int64_t>(i)) + 0.5;
  return std::clamp(static_cast<float>(index * static_cast<double>(width)), range.min, range.max);
}

BinnedObserver::BinnedObserver(int bins, ObserverShape shape)
    : Observer(std::move(shape)), bins_(bins) {
  if (bins < kFewestBins || bins > kMostBins) {
    throw QuantError("observer", "bins must be ", kFewestBins, " to ", kMostBins, ", got ", bins);
  }
  range_ = add_state("range", {channels(), 2});
  grid_ = add_state("grid", {channels(), 2});
  histogram_ = add_counts("histogram", {channels(), bins_});
}

Bins BinnedObserver::read(int64_t channel) const {
  return read(channel, range_, grid_, histogram_);
}

Bins BinnedObserver::read(int64_t channel,
                          const Tensor& ranges,
                          const Tensor& grids,
                          const IntegerBuffer& histograms) const {
  const float* const range = ranges.data() + 2 * channel;
  const float* const grid = grids.data() + 2 * channel;
  const auto histogram = histograms.values().subspan(static_cast<size_t>(bins_ * channel));
  Bins bins{{range[0], range[1]}, static_cast<int64_t>(grid[0]), grid[1], {}};
  const Grid used = grid_at(bins.range, std::ilogb(bins.width));
  bins.counts.assign(histogram.begin(), histogram.begin() + (used.end - bins.first));
  return bins;
}

void BinnedObserver::accumulate(const Batch& batch, std::span<const Range> extremes) {
  const auto width = static_cast<size_t>(bins_);
  std::vector<Range> ranges(extremes.begin(), extremes.end());
  std::vector<Grid> grids;
  std::vector<int64_t> counts(ranges.size() * width);
  for (size_t c = 0; c < ranges.size(); ++c) {
    Bins before;
    if (count() > 0) {
      before = read(static_cast<int64_t>(c));
      ranges[c] = {std::min(ranges[c].min, before.range.min),
                   std::max(ranges[c].max, before.range.max)};
    }
    Grid grid = smallest_grid(ranges[c], bins_);
    if (count() > 0) {
      const int exponent = std::ilogb(before.width);
      if (exponent > grid.exponent) grid = grid_at(ranges[c], exponent);
      const int doublings = grid.exponent - exponent;
      for (size_t i = 0; i < before.counts.size(); ++i) {
        const int64_t bin = (before.first + static_cast<int64_t>(i)) >> std::min(doublings, 63);
        if (before.counts[i] != 0)
          counts[c * width + static_cast<size_t>(bin - grid.first)] += before.counts[i];
      }
    }
    grids.push_back(grid);
  }

  // Each task counts some rows of one channel. With one channel, each value is a row.
  const int64_t inner = batch.channels == 1 ? 1 : batch.inner;
  const int64_t rows = batch.n / (batch.channels * inner);
  const int64_t blocks = even_blocks(rows, std::max(kBlock / inner, rows / 64));
  std::vector<int64_t> partial(static_cast<size_t>(batch.channels * blocks) * width);
  parallel_for(batch.channels * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t c = task / blocks;
      const int64_t block = task % blocks;
      const Grid& grid = grids[static_cast<size_t>(c)];
      const double inverse = grid.inverse_width();
      int64_t* const mine = partial.data() + task * bins_;
      for (int64_t row = rows * block / blocks; row < rows * (block + 1) / blocks; ++row) {
        const float* const x = batch.x + (row * batch.channels + c) * inner;
        for (int64_t i = 0; i < inner; ++i) {
          if (x[i] != 0.0f) ++mine[bin_of(x[i], inverse) - grid.first];
        }
      }
    }
  });
  for (size_t i = 0; i < partial.size(); ++i)
    counts[i / (width * static_cast<size_t>(blocks)) * width + i % width] += partial[i];

  histogram_.set(counts);
  for (size_t c = 0; c < ranges.size(); ++c) {
    range_.mutable_data()[2 * c] = ranges[c].min;
    range_.mutable_data()[2 * c + 1] = ranges[c].max;
    grid_.mutable_data()[2 * c] = static_cast<float>(grids[c].first);
    grid_.mutable_data()[2 * c + 1] = std::ldexp(1.0f, grids[c].exponent);
  }
}

// Both states contain the counts of `before`, which are therefore subtracted once.
void BinnedObserver::join_shard(const std::vector<NamedState>& before,
                                const std::vector<NamedState>& other) {
  const auto width = static_cast<size_t>(bins_);
  std::vector<int64_t> counts(static_cast<size_t>(channels()) * width);
  const bool is_first = before[0].integers.values()[0] == 0;
  for (int64_t c = 0; c < channels(); ++c) {
    const Bins own = read(c);
    const Bins theirs = read(c, other[1].tensor, other[2].tensor, other[3].integers);
    const Range range{std::min(own.range.min, theirs.range.min),
                      std::max(own.range.max, theirs.range.max)};
    Grid grid = smallest_grid(range, bins_);
    const int exponent = std::ilogb(std::max(own.width, theirs.width));
    if (exponent > grid.exponent) grid = grid_at(range, exponent);
    const auto add = [&](const Bins& bins, int64_t sign) {
      const int doublings = grid.exponent - std::ilogb(bins.width);
      for (size_t i = 0; i < bins.counts.size(); ++i) {
        const int64_t bin = (bins.first + static_cast<int64_t>(i)) >> std::min(doublings, 63);
        if (bins.counts[i] != 0)
          counts[static_cast<size_t>(c) * width + static_cast<size_t>(bin - grid.first)] +=
              sign * bins.counts[i];
      }
    };
    add(own, 1);
    add(theirs, 1);
    if (!is_first) add(read(c, before[1].tensor, before[2].tensor, before[3].integers), -1);
    range_.mutable_data()[2 * c] = range.min;
    range_.mutable_data()[2 * c + 1] = range.max;
    grid_.mutable_data()[2 * c] = static_cast<float>(grid.first);
    grid_.mutable_data()[2 * c + 1] = std::ldexp(1.0f, grid.exponent);
  }
  histogram_.set(counts);
}

std::vector<Range> BinnedObserver::choose_ranges(const QType& type, QScheme scheme) const {
  std::vector<Range> ranges(static_cast<size_t>(channels()));
  parallel_for(channels(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const Bins bins = read(c);
      const bool counted =
          std::any_of(bins.counts.begin(), bins.counts.end(), [](int64_t n) { return n > 0; });
      ranges[static_cast<size_t>(c)] = counted ? choose_range(bins, type, scheme) : bins.range;
    }
  });
  return ranges;
}

void BinnedObserver::check_state() const {
  for (int64_t c = 0; c < channels(); ++c) {
    const auto fail = [&](const char* state, const auto&... what) {
      throw DataError(
          where(), kind(), " observer: state \"", state, "\", channel ", c, ": ", what...);
    };
    const Range range{range_.data()[2 * c], range_.data()[2 * c + 1]};
    const float first = grid_.data()[2 * c];
    const float width = grid_.data()[2 * c + 1];
    if (!std::isfinite(range.min) || !std::isfinite(range.max) || range.min > range.max)
      fail("range", "[", range.min, ", ", range.max, "] is not finite or not in order");
    if (!std::isnormal(width) || width != std::ldexp(1.0f, std::ilogb(width)))
      fail("grid", "the width ", width, " is no power of two of at least 2^-126");
    const auto most = static_cast<float>(bins_);
    if (!(first >= -most && first <= 0.0f) || first != std::floor(first))
      fail("grid", "the first bin ", first, " is no whole number from ", -bins_, " to 0");
    // If the range ends far beyond the bins, an index that grid_at() computes may not fit into
    // int64_t. Such a range gets a grid that is refused below.
    const int exponent = std::ilogb(width);
    const double farthest = static_cast<double>(std::max(-range.min, range.max));
    const bool near = farthest <= std::ldexp(static_cast<double>(2 * bins_), exponent);
    const Grid used = near ? grid_at(range, exponent) : Grid{exponent, -2 * bins_, 2 * bins_};
    if (static_cast<float>(used.first) < first || static_cast<float>(used.end) > first + most) {
      fail("range",
           "[",
           range.min,
           ", ",
           range.max,
           "] is not in the bins, which are ",
           width,
           " wide and begin at ",
           first * width);
    }
    const auto begin = static_cast<int64_t>(first);
    int64_t sum = 0;
    for (int64_t i = 0; i < bins_; ++i) {
      const int64_t count = histogram_.values()[static_cast<size_t>(c * bins_ + i)];
      sum += count;
      if (sum > kMostCount) fail("histogram", "the counts up to bin ", i, " exceed 2^53");
      if ((begin + i < used.first || begin + i >= used.end) && count != 0) {
        fail(
            "histogram", "bin ", i, " counts values outside of [", range.min, ", ", range.max, "]");
      }
    }
  }
}

}  // namespace quantrain::quant
