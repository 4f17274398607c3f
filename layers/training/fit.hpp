#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/data/loader.hpp"
#include "framework/distributed/communicator.hpp"
#include "framework/optim/optimizer.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/module.hpp"
#include "layers/training/checkpoint.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain {

struct EarlyStopping {
  std::string metric = {};  ///< name of a metric from FitOptions::evaluate; empty: never stop early
  int64_t patience = 0;     ///< stop after this many epochs without a better value; 0: never
  /// true if the metric is an error, false if it is an accuracy. Must be set if there is a metric.
  std::optional<bool> smaller_is_better = {};
  /// After the last epoch, restore the best epoch's state of the network. This includes its phases.
  bool restore_best = true;
};

struct FitOptions {
  int64_t epochs = 1;
  int64_t steps = 0;  ///< at most this many optimizer steps; 0: no limit
  /// Batches whose gradients are averaged for one step. Without shards, gradients that the loss
  /// computes by itself, in a backward pass of its own, are summed.
  int64_t accumulate = 1;
  /// Cuts each batch into shards (Sharding), computes each as if it were a batch of its own, and
  /// joins them: see DataParallel. 1: a batch is computed whole. 0: 8 with ranks, else 1.
  int64_t shards = 0;
  /// The processes that compute the shards, such as MpiRanks; null: this one. Results do not depend
  /// on their number. All ranks call fit() with the same arguments. Rank 0 alone calls evaluate,
  /// writes checkpoints, log and page, reads checkpoints to resume, and prints; other callbacks run
  /// in all ranks.
  Communicator* ranks = nullptr;
  int64_t first_epoch = 0;  ///< the loader's first epoch number, for order and augmentation
  Schedule schedule =
      nullptr;             ///< of the learning rate; null: the optimizer's, which callbacks may set
  float clip_norm = 0.0f;  ///< limit for clip_grad_norm() before each step; 0: no limit
  /// Called before an epoch, for example to freeze or unfreeze ranges or batch norms. Epochs count
  /// from 0, whatever first_epoch is. A run that is resumed within an epoch does not call it for
  /// that epoch. So the function may change only state that a checkpoint restores, such as the
  /// module's.
  std::function<void(int64_t epoch)> begin_epoch = nullptr;
  /// Called after an epoch, in evaluation mode and without gradients. Returns metrics, for example
  /// on validation data. A metric's name is UTF-8, and none of the names of EpochReport's other
  /// fields, such as "loss".
  std::function<Metrics()> evaluate = nullptr;
  /// Called after a step, for your own progress display or log.
  std::function<void(int64_t step, float loss)> after_step = nullptr;
  EarlyStopping early_stopping = {};
  CheckpointOptions checkpoints = {};
  /// Tensors that checkpoints hold in addition to the states of module and optimizer, such as
  /// averaged weights, or parameters that the loss uses and that you train yourself.
  std::vector<NamedState> also = {};
  std::string label = {};  ///< print progress under this name, such as "float"; empty: no progress
  /// File for to_json() of each epoch, one per line. Each epoch appends its line; a resumed run
  /// first removes the lines of later epochs. Empty: none.
  std::string log = {};
  std::string page = {};  ///< file for training_page() at the end; empty: none
};

struct FitResult {
  /// If the run was resumed, also those before its checkpoint. Of more than 2,000 epochs, the last
  /// one and every second, fourth, ... one; the log has all.
  std::vector<EpochReport> epochs;
  int64_t steps = 0;                  ///< number of optimizer steps since the start of training
  std::optional<int64_t> best_epoch;  ///< best by early_stopping.metric; empty: no metric
  bool stopped_early = false;
  /// A resumed run had ended before: nothing was trained, and the other members are its results.
  bool already_finished = false;
  /// If already_finished: the settings that differ from those of that run, such as "epochs was 3
  /// and is 10"; empty: none, or the checkpoint is of an early version.
  std::string differences = {};
  std::string run = {};  ///< the run's identity: CheckpointOptions::run; "" without checkpoints
};

/// Trains a network: computes loss(batch) and its gradients, and takes a step after every
/// options.accumulate batches and after the last batch of an epoch.
///   Adam optimizer(net.parameters());
///   fit(net, optimizer, loader,
///       [&](Batch& batch) { return cross_entropy(net(std::move(batch.input)), batch); },
///       {.epochs = 3});
/// loss returns one number, the mean over a batch. It may move tensors out of the batch.
/// A run may be killed at any moment and started again with checkpoints.resume. It then ends with
/// the same bits as an uninterrupted run, on any number of threads. This has two conditions: the
/// program makes the network, optimizer and loader as before (with the same manual_seed(), because
/// Dropout takes its random numbers from there), and the metrics that evaluate() returns depend
/// only on the network. The learning rate is the checkpoint's, not that of the new optimizer. What
/// checkpoints.configuration holds must be equal: put there whatever else decides the result, such
/// as the loss and the augmentation. A run that is resumed within an epoch skips the batches that
/// were already used. If a resumed run had already ended, fit() trains nothing and returns the
/// run's results, even if options.epochs is now larger: the result says so and what differs, and so
/// does a line of the progress display. With a label, the display has a line for each epoch, with
/// the metrics that evaluate() returned, and a last line with the best epoch.
/// Throws: DataError if loss is null, if an option is out of range or lacks another option that it
/// needs, if the loader reads a stream of undeclared length, if a loss is not finite, if the first
/// loss depends on no parameter of the network or of the optimizer, or on a module's parameter that
/// is neither theirs nor in options.also, if a metric is missing, not finite, named like a field
/// of EpochReport or in another encoding than UTF-8, if the log or page cannot be written, or if
/// the position in a checkpoint is invalid or does not fit the loader or early_stopping; ShapeError
/// if loss does not return one number, or if one sample is left for the last batch, but a batch
/// norm needs at least two; DistributedError, in all ranks, if they do not fit each other, or
/// another rank threw or died. Exceptions from loss, from evaluate, from the callbacks and from the
/// class Checkpoints reach the caller. Checkpoints that are already written are kept.
FitResult fit(Module& net,
              Optimizer& optimizer,
              DataLoader& loader,
              const std::function<Tensor(Batch&)>& loss,
              const FitOptions& options = {});

}  // namespace quantrain
