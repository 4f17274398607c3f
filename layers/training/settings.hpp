#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/data/loader.hpp"
#include "layers/training/fit.hpp"

namespace quantrain {

/// What a run of fit() is made with, as names and texts. Checkpoints hold it, so that a run that
/// had ended can say what differs from it.
using RunSettings = std::vector<std::pair<std::string, std::string>>;

/// The settings of options and loader, the learning rate (of a schedule: at the start, in the
/// middle and at the end), and a hash of up to 64 samples spread over the data. A source with a
/// fixed order, such as a Stream, is not read and has no hash.
RunSettings run_settings(const FitOptions& options, const DataLoader& loader, float learning_rate);

/// What differs, such as "epochs was 3 and is 10, learning rate was 0.1 and is 0.01". Empty if
/// nothing does.
std::string differences(const RunSettings& before, const RunSettings& now);

}  // namespace quantrain
