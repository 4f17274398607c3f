#pragma once

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

/// The histogram of one channel. Bin i counts the values in
/// [(first + i) width, (first + i + 1) width); the bins reach from the smallest value, or 0, to the
/// largest, or 0. Exact zeros, which every choice of parameters represents exactly, are not
/// counted.
struct Bins {
  Range range;        ///< extremes, zeros included
  int64_t first = 0;  ///< <= 0
  float width = 0.0f;
  std::vector<int64_t> counts;

  /// The value that represents a bin: its centre, clamped to the extremes. Exact in float32.
  float centre(size_t i) const;
};

/// An observer that counts values in bins, and chooses a range from the counts. Bins are as wide as
/// the smallest power of two (2^-126 at least) for which all values seen fit into the given number
/// of bins, and begin at multiples of it. When the range grows, bins double their width and merge
/// in pairs. So the counts are those of all values at the final width, for any order of the batches
/// and any number of threads.
/// State: "range" [channels, 2], extremes; "grid" [channels, 2], first and width; "histogram"
/// [channels, bins, 2], counts as exact_count.hpp says.
class BinnedObserver : public Observer {
 public:
  static constexpr int kFewestBins = 64;
  static constexpr int kMostBins = 1 << 16;

  int64_t bins() const { return bins_; }

 protected:
  /// Throws: QuantError unless bins are kFewestBins to kMostBins.
  BinnedObserver(int bins, ObserverShape shape);

  /// The range of one channel. Called for several channels at the same time.
  virtual Range choose_range(const Bins& bins, const QType& type, QScheme scheme) const = 0;

  void accumulate(const Batch& batch, std::span<const Range> extremes) final;
  std::vector<Range> choose_ranges(const QType& type, QScheme scheme) const final;
  void check_state() const final;

 private:
  Bins read(int64_t channel) const;

  int64_t bins_;
  Tensor range_;
  Tensor grid_;
  Tensor histogram_;
};

}  // namespace quantrain::quant
