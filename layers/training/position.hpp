#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/training/epoch_report.hpp"

namespace quantrain {

/// The position of a run of fit(): all values that its next step depends on, without the tensors.
struct TrainingPosition {
  std::vector<EpochReport> done;
  std::string loader;  ///< the data and options that decide what the batches hold
  /// Names and texts (layers/training/settings.hpp). Empty in checkpoints of early versions.
  std::vector<std::pair<std::string, std::string>> settings;
  int64_t batch = 0;  ///< batches used in the current epoch; `done` holds the epochs before it
  int64_t steps = 0;
  double loss_sum = 0.0;  ///< over the samples of the current epoch so far
  int64_t samples = 0;
  double seconds = 0.0;
  float learning_rate = 0.0f;
  std::optional<int64_t> best_epoch;
  bool stopped_early = false;
  bool ended = false;

  int64_t epoch() const { return static_cast<int64_t>(done.size()); }
};

/// As JSON, for a checkpoint.
std::string to_text(const TrainingPosition& position);
/// Throws: DataError if the text is no position.
TrainingPosition position_from(const std::string& text);

}  // namespace quantrain
