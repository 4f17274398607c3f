#pragma once

#include <memory>

#include "quant/observers/observer.hpp"

namespace quantrain::quant {

struct RecentMinMaxOptions {
  static constexpr std::string_view kKind = "recent_min_max";

  int batches = 1024;  ///< length of the first window, at least 1

  std::unique_ptr<Observer> make(ObserverShape shape) const;
  static void describe(auto& options, auto& fields) { fields("batches", options.batches); }
  friend bool operator==(const RecentMinMaxOptions&, const RecentMinMaxOptions&) = default;
};

/// Range = [smallest, largest] of the values seen recently: those of the current window of batches
/// and of the window before it. A window ends when the number of batches seen is `batches` times a
/// power of two, so each window is as long as all windows before it together. The range
///   - grows at once, and covers every value of the latest half of all batches exactly;
///   - covers everything during the first 2 * batches batches;
///   - has forgotten a batch at the latest when four times as many batches were seen as until then
///     (or 2 * batches, if that is more).
/// So a value that comes back in every n batches stays covered from batch 2 n on, and the range
/// still follows a network whose values shrink while it trains.   docs/quantization.md (14)
/// State: "latest" [channels, 2] and "earlier" [channels, 2]: min and max of the two windows.
/// Source: the scaling by a history of maxima of NVIDIA's Transformer Engine (DelayedScaling,
/// amax_history_len = 1024); two windows replace the list of the latest maxima.
class RecentMinMaxObserver : public Observer {
 public:
  /// Throws: QuantError if the number of batches is less than 1.
  explicit RecentMinMaxObserver(const RecentMinMaxOptions& options = {}, ObserverShape shape = {});

  std::string_view kind() const override { return RecentMinMaxOptions::kKind; }
  bool needs_values() const override { return false; }

 protected:
  void join_shard(const std::vector<NamedState>& before,
                  const std::vector<NamedState>& other) override;
  void accumulate(const Batch& batch, std::span<const Range> extremes) override;
  std::vector<Range> choose_ranges(const QType& type, QScheme scheme) const override;
  void check_state() const override;

 private:
  RecentMinMaxOptions options_;
  Tensor latest_;
  Tensor earlier_;
};

}  // namespace quantrain::quant
