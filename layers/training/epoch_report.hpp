#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/metrics/metrics.hpp"

namespace quantrain {

class JsonWriter;

/// The results of an epoch.
struct EpochReport {
  int64_t epoch = 0;           ///< counted from 0
  int64_t steps = 0;           ///< optimizer steps since the start of training
  double loss = 0.0;           ///< mean over the samples
  float learning_rate = 0.0f;  ///< of the last step
  double seconds = 0.0;        ///< duration of training, without evaluation
  Metrics metrics = {};        ///< returned by FitOptions::evaluate
};

/// The report as JSON on one line: {"epoch": 0, "steps": 938, "loss": 0.41, "learning_rate": 0.001,
/// "seconds": 2.1, "accuracy": 0.91}.
std::string to_json(const EpochReport& report);
/// Whether to_json() has a field of this name in every report. A metric cannot have the name.
bool is_report_field(std::string_view name);
/// Writes the members of a report, except its metrics, into the open JSON object.
void write_members(JsonWriter& json, const EpochReport& report);

/// A self-contained HTML page without scripts. It has curves of the loss, the learning rate and
/// each metric that all epochs have, and a table of the epochs.
std::string training_page(const std::string& title, const std::vector<EpochReport>& epochs);

}  // namespace quantrain
