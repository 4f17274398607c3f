#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quantrain {

class JsonWriter;

/// The results of one evaluation by name: {"accuracy", 0.91}.
using Metrics = std::map<std::string, double>;

/// The results of an epoch.
struct EpochReport {
  int64_t epoch = 0;           ///< counted from 0
  int64_t steps = 0;           ///< of the optimizer, since the start of training
  double loss = 0.0;           ///< mean over the samples
  float learning_rate = 0.0f;  ///< of the last step
  double seconds = 0.0;        ///< of training, without the evaluation
  Metrics metrics = {};        ///< of FitOptions::evaluate
};

/// {"epoch": 0, "steps": 938, "loss": 0.41, "learning_rate": 0.001, "seconds": 2.1,
/// "accuracy": 0.91}, on one line.
std::string to_json(const EpochReport& report);
/// The members of a report but its metrics, into the object that is open.
void write_members(JsonWriter& json, const EpochReport& report);

/// An HTML page in one file, without scripts: curves of the loss, of each metric that all epochs
/// have and of the learning rate, and a table of the epochs.
std::string training_page(const std::string& title, const std::vector<EpochReport>& epochs);

}  // namespace quantrain
