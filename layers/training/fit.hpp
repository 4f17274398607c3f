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
  std::string metric = {};         ///< of FitOptions::evaluate; empty: training runs to its end
  int64_t patience = 0;            ///< stop after this many epochs without a better value; 0: never
  bool smaller_is_better = false;  ///< for an error
  bool restore_best = true;        ///< the network ends with the values of its best epoch
};

struct FitOptions {
  int64_t epochs = 1;
  int64_t steps = 0;            ///< of the optimizer, at most; 0: as many as the epochs have
  int64_t accumulate = 1;       ///< batches whose gradients are averaged in one step
  int64_t first_epoch = 0;      ///< number of the loader's first epoch: its order and augmentation
  Schedule schedule = nullptr;  ///< of the learning rate; none: the optimizer's stays as it is
  float clip_norm = 0.0f;       ///< clip_grad_norm before each step; 0: none
  /// Called before an epoch, for example to freeze ranges or batch norms, or let them move again.
  /// What it changes must be state of the module, or depend on the epoch alone.
  std::function<void(int64_t epoch)> begin_epoch = nullptr;
  /// Called after an epoch, in evaluation mode and without gradients: returns metrics on other
  /// data.
  std::function<Metrics()> evaluate = nullptr;
  /// Called after a step, for your own progress or log.
  std::function<void(int64_t step, float loss)> after_step = nullptr;
  EarlyStopping early_stopping = {};
  CheckpointOptions checkpoints = {};
  /// Tensors to save and restore besides the states of module and optimizer, such as averaged
  /// weights.
  std::vector<NamedTensor> also = {};
  std::string label = {};  ///< progress on standard output: "float"; empty: none
  std::string log = {};    ///< a file with to_json() of each epoch, a line each; empty: none
  std::string page = {};   ///< training_page() goes there at the end; empty: nowhere
};

struct FitResult {
  std::vector<EpochReport> epochs;    ///< including those before a resumed run's checkpoint
  int64_t steps = 0;                  ///< of the optimizer
  std::optional<int64_t> best_epoch;  ///< by the metric of early stopping
  bool stopped_early = false;
};

/// Trains: for each batch loss(batch), its gradients, a step.
///   Adam optimizer(net.parameters());
///   fit(net, optimizer, loader,
///       [&](Batch& batch) { return cross_entropy(net(std::move(batch.images)), batch.labels); },
///       {.epochs = 3});
/// loss: the mean over a batch, one number; it may move the batch's tensors away.
/// A run that is killed at any moment and started again with checkpoints.resume ends with the same
/// bits as an uninterrupted run, on any number of threads, if the program makes network, optimizer
/// and loader as before and evaluate depends on the network alone. To find its position in an
/// epoch, a resumed run skips the batches that were used; a run that has ended is not continued.
/// Throws: DataError if options make no sense; if the loader reads a stream of undeclared length; if
/// the loss is not finite (naming the step); if a metric is missing or not finite; if a file cannot
/// be written or read, as Checkpoints. Also whatever loss, evaluate and the callbacks throw.
/// Checkpoints written before stay.
FitResult fit(Module& net,
              Optimizer& optimizer,
              DataLoader& loader,
              const std::function<Tensor(Batch&)>& loss,
              const FitOptions& options = {});

}  // namespace quantrain
