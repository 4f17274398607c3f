#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// The histogram of one channel. Bin i counts the values in
/// [(first + i) width, (first + i + 1) width). The bins cover 0 and all values. Exact zeros are not
/// counted, because all parameters represent them exactly.
struct Bins {
  Range range;        ///< smallest and largest of all values, exact zeros too
  int64_t first = 0;  ///< index of the first bin, <= 0
  float width = 0.0f;
  std::vector<int64_t> counts;

  /// The value that represents a bin: its centre, clamped to the extremes. Exact in float32.
  float centre(size_t i) const;
};

/// An observer that counts values in bins, and chooses a range from the counts. The width of a bin
/// is the smallest power of two (at least 2^-126) for which the given number of bins covers 0 and
/// all values seen. Bins begin at multiples of this width. When a value lies beyond the bins, the
/// width doubles and the bins merge in pairs. So the counts are the same as if all values had been
/// counted at the final width, for any order of the batches and any number of threads.
/// State: "range" [channels, 2], min and max; "grid" [channels, 2], first and width; "histogram"
/// [channels, bins], counts.
class BinnedObserver : public Observer {
 public:
  static constexpr int kFewestBins = 64;
  static constexpr int kMostBins = 1 << 16;

  int64_t bins() const { return bins_; }

 protected:
  /// Throws: QuantError unless bins is in [kFewestBins, kMostBins].
  BinnedObserver(int bins, ObserverShape shape);

  /// The range of one channel. Must be thread-safe: several channels are computed at the same time.
  virtual Range choose_range(const Bins& bins, const QType& type, QScheme scheme) const = 0;

  void join_shard(const std::vector<NamedState>& before,
                  const std::vector<NamedState>& other) final;
  void accumulate(const Batch& batch, std::span<const Range> extremes) final;
  std::vector<Range> choose_ranges(const QType& type, QScheme scheme) const final;
  void check_state() const final;

 private:
  Bins read(int64_t channel) const;
  Bins read(int64_t channel,
            const Tensor& ranges,
            const Tensor& grids,
            const IntegerBuffer& histograms) const;

  int64_t bins_;
  Tensor range_;
  Tensor grid_;
  IntegerBuffer histogram_;
};

}  // namespace quantrain::quant
