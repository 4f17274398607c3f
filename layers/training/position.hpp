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
  int64_t epochs = 0;                  ///< complete ones
  std::vector<EpochReport> done = {};  ///< of the complete epochs; of many, some: see thin()
  std::string loader = {};             ///< the data and options that decide what the batches hold
  /// Names and texts (layers/training/settings.hpp). Empty in checkpoints of early versions.
  std::vector<std::pair<std::string, std::string>> settings = {};
  int64_t batch = 0;  ///< batches used in the current epoch
  int64_t steps = 0;
  double loss_sum = 0.0;  ///< over the samples of the current epoch so far
  int64_t samples = 0;
  double seconds = 0.0;
  float learning_rate = 0.0f;
  std::optional<EpochReport> best = {};  ///< of the best epoch
  bool stopped_early = false;
  bool ended = false;
};

/// Up to this number of epochs, every report is kept.
inline constexpr int64_t kMostReports = 2000;
/// Removes all but the last report and every second, fourth, eighth, ... one, so that at most
/// kMostReports + 1 are left. Which ones depends on the last epoch's number alone.
void thin(std::vector<EpochReport>& reports);

/// As JSON, for a checkpoint.
std::string to_text(const TrainingPosition& position);
/// Throws: DataError if the text is no position.
TrainingPosition position_from(const std::string& text);

}  // namespace quantrain
