#include "quant/observers/entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quantrain::quant {
namespace {

double x_log_x(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }

// Counts of the bins [-reach, reach) or [0, reach), and prefix sums from which the divergence of
// any window is computed.
class Distribution {
 public:
  Distribution(const Bins& bins, int64_t reach, bool two_sided)
      : begin_(two_sided ? -reach : 0),
        counts_(static_cast<size_t>(reach - begin_)),
        sums_(counts_.size() + 1) {
    for (size_t i = 0; i < bins.counts.size(); ++i) {
      const int64_t bin = bins.first + static_cast<int64_t>(i);
      if (bin >= begin_)
        counts_[static_cast<size_t>(bin - begin_)] = static_cast<double>(bins.counts[i]);
    }
    for (size_t i = 0; i < counts_.size(); ++i) {
      sums_[i + 1] = {sums_[i].count + counts_[i],
                      sums_[i].bins + (counts_[i] > 0.0 ? 1.0 : 0.0),
                      sums_[i].x_log_x + x_log_x(counts_[i])};
    }
  }

  // The divergence of the window [begin, end) if it is quantized to `levels` levels.
  double divergence(int64_t begin, int64_t end, int64_t levels) const {
    const auto first = static_cast<size_t>(begin - begin_);
    const auto last = static_cast<size_t>(end - begin_ - 1);
    const Sums window = sums_[last + 1] - sums_[first];
    const double total = sums_.back().count;
    const double below = sums_[first].count;
    const double above = total - sums_[last + 1].count;
    if ((below > 0.0 && counts_[first] == 0.0) || (above > 0.0 && counts_[last] == 0.0))
      return std::numeric_limits<double>::infinity();

    // sum p log p. The window's first bin also gets the values below the window, its last bin those
    // above it. A window has at least two bins.
    double sum = window.x_log_x;
    sum += x_log_x(counts_[first] + below) - x_log_x(counts_[first]);
    sum += x_log_x(counts_[last] + above) - x_log_x(counts_[last]);
    // sum p log q: q is constant within a level.
    const int64_t width = end - begin;
    size_t at = first;
    for (int64_t level = 0; level < levels; ++level) {
      // Bins b with floor(b levels / width) == level.
      const size_t next = first + static_cast<size_t>(((level + 1) * width + levels - 1) / levels);
      const Sums part = sums_[next] - sums_[at];
      at = next;
      if (part.count == 0.0) continue;
      const double p =
          part.count + (level == 0 ? below : 0.0) + (level == levels - 1 ? above : 0.0);
      sum -= p * std::log(part.count / part.bins);
    }
    return sum / total + std::log(window.count / total);
  }

 private:
  struct Sums {
    double count = 0.0;
    double bins = 0.0;  // number of bins that are not empty
    double x_log_x = 0.0;
    Sums operator-(const Sums& other) const {
      return {count - other.count, bins - other.bins, x_log_x - other.x_log_x};
    }
  };

  int64_t begin_;
  std::vector<double> counts_;
  std::vector<Sums> sums_;
};

}  // namespace

std::unique_ptr<Observer> EntropyOptions::make(ObserverShape shape) const {
  return std::make_unique<EntropyObserver>(*this, std::move(shape));
}

Range EntropyObserver::choose_range(const Bins& bins, const QType& type, QScheme scheme) const {
  const bool two_sided = bins.range.min < 0.0f;
  int64_t levels = type.levels();
  if (!two_sided && scheme == QScheme::kSymmetric)
    levels = type.qmax() + 1 - (type.is_signed ? 0 : (type.qmax() + 1) / 2);
  const int64_t end = bins.first + static_cast<int64_t>(bins.counts.size());
  const int64_t reach = two_sided ? std::max(-bins.first, end) : end;

  const Distribution distribution(bins, reach, two_sided);
  double least = std::numeric_limits<double>::infinity();
  int64_t best = reach;
  for (int64_t i = two_sided ? (levels + 1) / 2 : levels; i <= reach; ++i) {
    const double divergence = distribution.divergence(two_sided ? -i : 0, i, levels);
    if (divergence <= least && std::isfinite(divergence)) {
      least = divergence;
      best = i;
    }
  }
  const float threshold = static_cast<float>(best) * bins.width;
  return {std::max(bins.range.min, -threshold), std::min(bins.range.max, threshold)};
}

}  // namespace quantrain::quant
