#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/data/batch.hpp"
#include "framework/data/loader.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/metrics/regression.hpp"

namespace quantrain {

struct EvaluateOptions {
  /// Rows with this label do not count, as in CrossEntropyOptions. It may be outside of [0, C).
  std::optional<int32_t> ignore_index{};
};

/// Collects the outputs of a network, batch by batch, and computes metrics from all of them. The
/// names of metrics:
///
/// for labels: outputs y [..., C] are scores of C classes; there is a label for each row
///   "accuracy"                    share of rows whose largest score is that of their label
///   "cross_entropy"               mean of -log softmax(y)[label]
///   "recall", "precision", "f1"   "recall_0", "recall_1" and so on for each class as in
///                                 ConfusionMatrix, and their mean over the classes that occur
/// for numbers: outputs and targets [N, ..., outputs] have one shape
///   "mae", "mse", "rmse", "r2"    as in RegressionErrors, the mean over the outputs. If there are
///   2
///                                 to kMostOutputs outputs, also each: "mae_0", "mae_1" and so on.
///                                 Their unit is that of the targets, scaled if these are scaled
///
/// Without names: accuracy and cross_entropy for labels; mae, mse and r2 for numbers.
/// evaluate() does all of this for a network (layers/evaluate.hpp) or an integer model
/// (framework/metrics/evaluate.hpp).
class Evaluation {
 public:
  /// More outputs, such as the pixels of an autoencoder, have no entry for each.
  static constexpr int64_t kMostOutputs = 64;

  /// Throws: DataError if there is no metric of one of these names.
  explicit Evaluation(std::vector<std::string> names = {}, const EvaluateOptions& options = {});

  /// Adds the outputs y for a batch. Its labels count, if it has some, else its only target, which
  /// holds numbers like y, or a label for each row of y: y [N, H, W, C] and targets [N, H, W] are
  /// scores and labels of pixels. One score is no choice: for y [N, ..., 1], targets [N, ...] are
  /// numbers.
  /// Throws: ShapeError if the shapes do not fit; DataError if the batch has neither labels nor one
  /// target, a label is out of range, a value is NaN or infinite, a metric does not fit the
  /// targets, or ignore_index is set and the targets are numbers. If it throws, nothing is added.
  void add(const Tensor& y, const Batch& batch);

  /// Throws: DataError if nothing was added, or all labels were ignored.
  Metrics metrics() const;

 private:
  void add_classes(const Tensor& y, std::span<const int32_t> labels);
  void add_numbers(const Tensor& y, const Tensor& target);
  void check_names(bool labels) const;

  std::vector<std::string> names_;
  EvaluateOptions options_;
  std::optional<ConfusionMatrix> classes_;
  double cross_entropy_ = 0.0;  // sum over the rows
  std::optional<RegressionErrors> errors_;
};

/// Runs a network, or whatever else has outputs, on a batch.
using Runner = std::function<std::vector<Tensor>(const Batch& batch)>;

/// Evaluation of whatever `run` computes from the batches of one epoch, such as the mean of several
/// networks.
/// Throws: as Evaluation; DataError if there is no batch; ShapeError if run returns several
/// outputs.
Metrics evaluate(const Runner& run,
                 const DataLoader& batches,
                 const std::vector<std::string>& metrics = {},
                 const EvaluateOptions& options = {});
/// Each output for all samples of one epoch [N, ...], in the order of the batches.
/// Throws: DataError if there is no batch; ShapeError if the shapes of the outputs change.
std::vector<Tensor> predict_outputs(const Runner& run, const DataLoader& batches);
/// The only output.   Throws: as above; ShapeError if run returns several outputs.
Tensor predict(const Runner& run, const DataLoader& batches);

}  // namespace quantrain
