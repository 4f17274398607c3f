#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/loader.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/module.hpp"
#include "layers/training/checkpoint.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain::examples {

/// Samples of a batch where nothing is trained.
inline constexpr int64_t kEvaluationBatch = 250;

/// Cross-entropy of the labels. Moves the batch's images away: the first quantization frees them.
Tensor classification_loss(Module& net, Batch& batch);

struct TrainingOptions {
  std::string label = {};  ///< of the progress lines: "float"; empty: no lines
  int64_t epochs = 1;
  int64_t first_epoch = 0;      ///< number of the loader's first epoch: its order and augmentation
  float learning_rate = 1e-3f;  ///< at the start; it falls to 0 along a half cosine
  std::function<void(int64_t epoch)> begin_epoch = nullptr;  ///< of FitOptions
  std::function<Tensor(Module& net, Batch& batch)> loss = classification_loss;
  std::function<Metrics()> evaluate = nullptr;  ///< of FitOptions: what goes into the log
  CheckpointOptions checkpoints = {};
  std::string log = {};   ///< a file for a line of JSON for each epoch; empty: none
  std::string page = {};  ///< a file for curves as HTML; empty: none
};

/// Trains with Adam, by fit(); returns the seconds that each epoch took.
/// Throws: as fit().
std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options);

/// What a network gives for each sample, [N, outputs], in evaluation; an integer network's logits
/// as real values.
Tensor outputs(Module& net, const DataLoader& batches);
Tensor outputs(const IntegerModel& model, const DataLoader& batches);

/// Fraction of images whose largest logit is their label's, in evaluation; among equal logits the
/// lowest class counts.
double accuracy(Module& net, const Dataset& images);
double accuracy(const IntegerModel& model, const Dataset& images);

}  // namespace quantrain::examples
