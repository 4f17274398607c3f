#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/loader.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/module.hpp"
#include "layers/training/checkpoint.hpp"

namespace quantrain::examples {

/// Images of a batch where nothing is trained.
inline constexpr int64_t kEvaluationBatch = 250;

struct TrainingOptions {
  std::string label = {};  ///< of the progress lines: "float"; empty: no lines
  int64_t epochs = 1;
  int64_t first_epoch = 0;      ///< number of the loader's first epoch: its order and augmentation
  float learning_rate = 1e-3f;  ///< at the start; it falls to 0 along a half cosine
  std::function<void(int64_t epoch)> begin_epoch = nullptr;  ///< of FitOptions
  const Dataset* evaluated = nullptr;  ///< its accuracy after each epoch goes into the log
  CheckpointOptions checkpoints = {};
  std::string log = {};   ///< a file for a line of JSON for each epoch; empty: none
  std::string page = {};  ///< a file for curves as HTML; empty: none
};

/// Trains with Adam and cross-entropy, by fit(); returns the seconds that each epoch took.
/// Throws: as fit().
std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options);

/// Fraction of images whose largest logit is their label's, in evaluation; among equal logits the
/// lowest class counts.
double accuracy(Module& net, const Dataset& images);
double accuracy(const IntegerModel& model, const Dataset& images);

}  // namespace quantrain::examples
