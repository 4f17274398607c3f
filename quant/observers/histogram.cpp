#include "quant/observers/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "framework/arithmetic/quantize.hpp"

namespace quantrain::quant {
namespace {

// The squared error of a range, computed with (3) and (1) of docs/quantization.md.
double exact_error(const Bins& bins, Range range, const QType& type, QScheme scheme) {
  const auto [scale, zero_point] = choose_params(range, type, scheme, "histogram observer");
  double error = 0.0;
  for (size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] == 0) continue;
    const float x = bins.centre(i);
    const int32_t code = quantize(x, scale, zero_point, type.qmin(), type.qmax());
    const double difference =
        static_cast<double>(dequantize(code, scale, zero_point)) - static_cast<double>(x);
    error += static_cast<double>(bins.counts[i]) * difference * difference;
  }
  return error;
}

// A range that the search considers, given by the positions of its codes. The unit of length is one
// bin.
struct Candidate {
  int64_t below = 0;  // codes below 0
  double step = 0.0;  // distance between two neighbouring codes
  double error = std::numeric_limits<double>::infinity();
};

// Prefix sums of counts and of counts times centres. With them, the cost of a sum of squared errors
// depends on the number of codes, not on the number of bins.
class Moments {
 public:
  Moments(const Bins& bins, int64_t codes)
      : codes_(codes), first_(static_cast<double>(bins.first)), sums_(bins.counts.size() + 1) {
    for (size_t i = 0; i < bins.counts.size(); ++i) {
      const auto count = static_cast<double>(bins.counts[i]);
      sums_[i + 1] = {sums_[i].count + count,
                      sums_[i].moment + count * (first_ + static_cast<double>(i) + 0.5)};
    }
  }

  // The sum of count * (r - x)^2 over all bins, minus the sum of count * x^2, which is the same for
  // every candidate. x is a bin's centre, r the position of the nearest code.
  Candidate at(int64_t below, double step) const {
    double error = 0.0;
    each_code(below, step, [&](double code, const Sums& sums) {
      const double place = code * step;
      error += place * (place * sums.count - 2.0 * sums.moment);
    });
    return {below, step, error};
  }

  // The best step if every bin keeps its code.
  double best_step(const Candidate& from) const {
    double product = 0.0;
    double squares = 0.0;
    each_code(from.below, from.step, [&](double code, const Sums& sums) {
      product += code * sums.moment;
      squares += code * code * sums.count;
    });
    return squares > 0.0 ? product / squares : from.step;
  }

 private:
  struct Sums {
    double count = 0.0;
    double moment = 0.0;
  };

  // Calls f(code, sums of the bins that are rounded to this code) for each code. A centre halfway
  // between two codes may go to either, because both are equally far away.
  template <class F>
  void each_code(int64_t below, double step, F&& f) const {
    Sums before;
    const auto bins = static_cast<double>(sums_.size() - 1);
    for (int64_t code = -below; code < codes_ - below; ++code) {
      const double place = static_cast<double>(code) * step - first_;
      const bool last = code + 1 == codes_ - below;
      // A centre i + 0.5 is rounded to this code if it is not above the midpoint between this code
      // and the next one. Centres that are rounded to earlier codes are in `before`.
      const double end = last ? bins : std::clamp(place + 0.5 * step + 0.5, 0.0, bins);
      const Sums& sums = sums_[static_cast<size_t>(end)];
      f(static_cast<double>(code), Sums{sums.count - before.count, sums.moment - before.moment});
      before = sums;
    }
  }

  int64_t codes_;
  double first_;
  std::vector<Sums> sums_;
};

// The search evaluates a coarse grid: its columns are values of `below`, its rows values of `step`.
// Returns the step of one row. The steps are evenly spaced if this widens the whole range by at
// most one bin from row to row. Otherwise small steps are closer together than large ones, because
// the relative change matters.
double grid_step(int64_t row, int64_t rows, double largest, int64_t codes) {
  const double share = static_cast<double>(row) / static_cast<double>(rows);
  const bool every_bin = largest * static_cast<double>(codes - 1) <= static_cast<double>(rows);
  return every_bin ? largest * share : largest * share * share;
}

constexpr int64_t kBudget = 1 << 19;  // the grid evaluates about this many codes
constexpr int64_t kColumns = 32;      // at most this many values of `below`
constexpr int64_t kFewestRows = 16;   // at least this many values of `step`
constexpr int64_t kMostRows = 4096;
constexpr int64_t kFewestStarts = 4;  // at least this many minima are refined, if there are so many
constexpr int64_t kMostStarts = 16;

// Where the codes may lie, and where the values lie, in bins.
struct Limits {
  int64_t codes;
  int64_t fewest;  // codes below 0
  int64_t most;
  double low;   // distance of the smallest value from 0; 0 if no value is negative
  double high;  // distance of the largest value from 0

  // The candidate with k codes from 0 to the value that is farthest from 0, and with as many codes
  // below 0 as the values there need.
  Candidate on_farthest(int64_t k) const {
    const double step = std::max(low, high) / static_cast<double>(k);
    return {std::clamp<int64_t>(std::llround(low / step), fewest, most), step};
  }
};

// If the values lie on a grid, returns its codes: a candidate that covers all values and has a code
// in each bin that has values. Of several such grids, the finest. The value that is farthest from 0
// lies on each of them.
std::optional<Candidate> exact_grid(const Bins& bins, const Limits& limits) {
  for (int64_t k = limits.codes - 1; k >= 1; --k) {
    Candidate grid = limits.on_farthest(k);
    const bool covers = std::llround(limits.low / grid.step) <= grid.below &&
                        std::llround(limits.high / grid.step) <= limits.codes - 1 - grid.below;
    bool hits = covers;
    for (size_t i = 0; i < bins.counts.size() && hits; ++i) {
      if (bins.counts[i] == 0) continue;
      const auto begin = static_cast<double>(bins.first + static_cast<int64_t>(i));
      const double place = std::nearbyint((begin + 0.5) / grid.step) * grid.step;
      const double rounding = std::abs(place) * 0x1p-22;  // of the values, which are float32
      hits = place >= begin - rounding && place <= begin + 1.0 + rounding;
    }
    if (hits) return grid;
  }
  return {};
}

// Searches for the best candidate with `step` up to `largest`.
Candidate search(const Moments& moments, const Limits& limits, double largest) {
  const auto [codes, fewest, most, low, high] = limits;
  const int64_t columns = std::min(
      {most - fewest + 1, kColumns, std::max<int64_t>(kBudget / (codes * kFewestRows), 1)});
  const int64_t rows = std::clamp(kBudget / (codes * columns), kFewestRows, kMostRows);
  // A column can have several narrow minima, where codes coincide with peaks of the counts.
  std::vector<Candidate> starts;
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t below = columns == 1 ? fewest : fewest + (most - fewest) * column / (columns - 1);
    Candidate here;
    double before = here.error;
    for (int64_t row = 1; row <= rows; ++row) {
      const Candidate next = moments.at(below, grid_step(row, rows, largest, codes));
      if (row > 1 && here.error <= before && here.error <= next.error) starts.push_back(here);
      before = here.error;
      here = next;
    }
    if (here.error <= before) starts.push_back(here);
  }
  // If the values lie near a grid, its minimum can be narrower than the distance between rows.
  for (int64_t k = 1; k < codes; ++k) {
    const Candidate grid = limits.on_farthest(k);
    if (grid.step <= largest) starts.push_back(moments.at(grid.below, grid.step));
  }
  const auto kept = std::min(
      starts.size(), static_cast<size_t>(std::clamp(4096 / codes, kFewestStarts, kMostStarts)));
  std::partial_sort(starts.begin(),
                    starts.begin() + static_cast<std::ptrdiff_t>(kept),
                    starts.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return std::tie(a.error, a.below, a.step) <
                             std::tie(b.error, b.below, b.step);
                    });
  starts.resize(kept);

  // This change of `step` widens the whole range by one bin.
  const double one_bin = 1.0 / static_cast<double>(codes - 1);
  Candidate best = starts[0];
  for (Candidate here : starts) {
    int64_t move = (most - fewest + columns - 1) / columns;
    double change = 2.0 * std::sqrt(here.step * largest) / static_cast<double>(rows);
    while (true) {
      Candidate next = here;
      for (int64_t i = -1; i <= 1; ++i) {
        for (int64_t k = -1; k <= 1; ++k) {
          const int64_t below = std::clamp(here.below + i * move, fewest, most);
          const double step = here.step + static_cast<double>(k) * change;
          if (!(step > 0.0 && step <= largest)) continue;
          const Candidate candidate = moments.at(below, step);
          if (candidate.error < next.error) next = candidate;
        }
      }
      if (next.error < here.error) {
        here = next;
        continue;
      }
      if (move <= 1 && change <= one_bin) break;
      move = std::max<int64_t>(move / 2, std::min<int64_t>(move, 1));
      change *= 0.5;
    }
    while (true) {  // to the minimum between two changes of a bin's code
      const double step = moments.best_step(here);
      if (!(step > 0.0 && step <= largest)) break;
      const Candidate next = moments.at(here.below, step);
      if (!(next.error < here.error)) break;
      here = next;
    }
    if (here.error < best.error) best = here;
  }
  return best;
}

}  // namespace

std::unique_ptr<Observer> HistogramOptions::make(ObserverShape shape) const {
  return std::make_unique<HistogramObserver>(*this, std::move(shape));
}

Range HistogramObserver::choose_range(const Bins& bins, const QType& type, QScheme scheme) const {
  const int64_t codes = type.levels();
  if (codes > this->bins()) return bins.range;
  const auto width = static_cast<double>(bins.width);
  const double low = std::max(-static_cast<double>(bins.range.min), 0.0) / width;
  const double high = std::max(static_cast<double>(bins.range.max), 0.0) / width;
  const Moments moments(bins, codes);
  const auto real = [&](double length) {
    constexpr auto kMost = static_cast<double>(std::numeric_limits<float>::max());
    return static_cast<float>(std::clamp(length * width, -kMost, kMost));
  };

  // Steps of up to twice the length that covers all values: if the values lie on a grid, the best
  // codes lie on it, too, and some may be unused.
  Limits limits{codes, 0, 0, low, high};
  double largest = 0.0;
  if (scheme == QScheme::kSymmetric) {
    limits.fewest = limits.most = type.is_signed ? -type.qmin() : (type.qmax() + 1) / 2;
    const auto above = static_cast<double>(codes - 1 - limits.most);
    largest = 2.0 * std::max(low / static_cast<double>(limits.most), high / above);
  } else {
    // If all values lie on one side of 0, so do all codes.
    limits.fewest = high > 0.0 ? 0 : codes - 1;
    limits.most = low > 0.0 ? codes - 1 : 0;
    largest = 2.0 * (low + high) / static_cast<double>(codes - 1);
  }
  const std::optional<Candidate> grid = exact_grid(bins, limits);
  const Candidate chosen = grid ? *grid : search(moments, limits, largest);
  const auto above = static_cast<double>(codes - 1 - chosen.below);
  Range best{real(-static_cast<double>(chosen.below) * chosen.step), real(above * chosen.step)};
  if (scheme == QScheme::kSymmetric) {
    best.max = real(0.5 * chosen.step * static_cast<double>(codes - 1));
    best.min = -best.max;
  }
  if (grid) return best;
  const bool better =
      exact_error(bins, best, type, scheme) < exact_error(bins, bins.range, type, scheme);
  return better ? best : bins.range;
}

}  // namespace quantrain::quant
