#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/loader.hpp"
#include "framework/distributed/communicator.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/module.hpp"
#include "layers/training/checkpoint.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain::examples {

/// Batch size of evaluation.
inline constexpr int64_t kEvaluationBatch = 250;

/// Cross-entropy with the labels. Moves the images out of the batch, so that the first quantization
/// frees them.
Tensor classification_loss(Module& net, Batch& batch);

struct TrainingOptions {
  std::string label = {};  ///< start of each progress line, such as "float"; empty: no lines
  int64_t epochs = 1;
  int64_t shards = 0;             ///< as in FitOptions
  Communicator* ranks = nullptr;  ///< as in FitOptions
  int64_t first_epoch = 0;      ///< the loader counts epochs from here (for order and augmentation)
  float learning_rate = 1e-3f;  ///< at the start; it falls to 0 along a half cosine
  std::function<void(int64_t epoch)> begin_epoch = nullptr;  ///< as in FitOptions
  std::function<Tensor(Module& net, Batch& batch)> loss = classification_loss;
  std::function<Metrics()> evaluate = nullptr;  ///< as in FitOptions: metrics for the log
  CheckpointOptions checkpoints = {};
  std::string log = {};   ///< a file for one line of JSON per epoch; empty: none
  std::string page = {};  ///< a file for curves as HTML; empty: none
};

/// Trains with Adam, by fit(); returns the seconds that each epoch took.
/// Throws: as fit().
std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options);

/// Fraction of images whose largest logit is that of their label, in evaluation mode. Among equal
/// logits, the lowest class counts.
double accuracy(Module& net, const Dataset& images);
double accuracy(const IntegerModel& model, const Dataset& images);

}  // namespace quantrain::examples
