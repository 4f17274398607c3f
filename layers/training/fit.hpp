#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/loader.hpp"
#include "framework/optim/optimizer.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/module.hpp"
#include "layers/training/checkpoint.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain {

struct EarlyStopping {
  std::string metric = {};  ///< name of a metric from FitOptions::evaluate; empty: never stop early
  int64_t patience = 0;     ///< stop after this many epochs without a better value; 0: never
  bool smaller_is_better = false;  ///< true if the metric is an error
  bool restore_best = true;        ///< the network ends with the values of its best epoch
};

struct FitOptions {
  int64_t epochs = 1;
  int64_t steps = 0;            ///< at most this many optimizer steps; 0: no limit
  int64_t accumulate = 1;       ///< batches whose gradients are averaged in one step
  int64_t first_epoch = 0;      ///< the loader counts epochs from here (for order and augmentation)
  Schedule schedule = nullptr;  ///< of the learning rate; null: the optimizer's rate stays
  float clip_norm = 0.0f;       ///< clip_grad_norm before each step; 0: none
  /// Called before an epoch, for example to freeze ranges or batch norms, or to let them move
  /// again. A run that is resumed within an epoch does not call it for that epoch. So it may change
  /// only state that a checkpoint restores, such as the module's.
  std::function<void(int64_t epoch)> begin_epoch = nullptr;
  /// Called after an epoch, in evaluation mode and without gradients. Returns metrics, for example
  /// on validation data.
  std::function<Metrics()> evaluate = nullptr;
  /// Called after a step, for your own progress or log.
  std::function<void(int64_t step, float loss)> after_step = nullptr;
  EarlyStopping early_stopping = {};
  CheckpointOptions checkpoints = {};
  /// Tensors to save and restore besides the states of module and optimizer, such as averaged
  /// weights.
  std::vector<NamedTensor> also = {};
  std::string label = {};  ///< prints progress under this name, for example "float"; empty: none
  std::string log = {};    ///< file that gets to_json() of each epoch as a line; empty: none
  std::string page = {};   ///< file that gets training_page() at the end; empty: none
};

struct FitResult {
  std::vector<EpochReport> epochs;    ///< a resumed run includes epochs before its checkpoint
  int64_t steps = 0;                  ///< number of optimizer steps
  std::optional<int64_t> best_epoch;  ///< best by the metric of early stopping
  bool stopped_early = false;
};

/// Trains a network: for each batch, computes loss(batch) and its gradients, and takes a step.
///   Adam optimizer(net.parameters());
///   fit(net, optimizer, loader,
///       [&](Batch& batch) { return cross_entropy(net(std::move(batch.images)), batch.labels); },
///       {.epochs = 3});
/// loss returns one number, the mean over a batch. It may move tensors out of the batch.
/// A run that is killed at any moment and started again with checkpoints.resume ends with the same
/// bits as an uninterrupted run, on any number of threads, if the program makes network, optimizer
/// and loader as before and evaluate depends on the network alone. To find its position in an
/// epoch, a resumed run skips the batches that were used. If the run had already ended, its results
/// are returned and nothing is trained, even if options.epochs is larger now.
/// Throws: DataError if loss is null or an option is out of range; if the loader reads a stream of
/// undeclared length; if the loss is not finite (naming the step); if a metric is missing or not
/// finite; if a file cannot be written or read, as Checkpoints does. Also whatever loss, evaluate
/// and the callbacks throw. Checkpoints that are already written are kept.
FitResult fit(Module& net,
              Optimizer& optimizer,
              DataLoader& loader,
              const std::function<Tensor(Batch&)>& loss,
              const FitOptions& options = {});

}  // namespace quantrain
