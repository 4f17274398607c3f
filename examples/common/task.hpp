#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "examples/common/training.hpp"
#include "framework/data/batch_source.hpp"
#include "framework/data/loader.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain::examples {

/// The data and the loss that a network is trained with, and the score that says how good it is.
struct Task {
  std::string dataset;  ///< its name, for the report
  /// The flags of this program that the samples depend on, such as "--shift 2". Checkpoints store
  /// these flags.
  std::string settings = {};
  std::shared_ptr<const BatchSource> training;
  std::shared_ptr<const BatchSource> calibration;  ///< some of the training samples
  std::shared_ptr<const BatchSource> test;
  Tensor example;       ///< one sample [1, ...], with the codes that its floats come from
  int64_t outputs = 0;  ///< number of the network's outputs: its classes
  Transform augment = nullptr;
  std::function<Tensor(Module& net, Batch& batch)> loss = classification_loss;
  /// The score's name. The score "accuracy" is printed in percent. 1 is the best value of every
  /// score.
  std::string score_name = "accuracy";
  /// Computes the score from a network's outputs for the test samples, in the samples' order.
  /// Shapes: y [N, outputs].
  std::function<double(const Tensor& y)> score;
  /// The same samples without codes, if the inputs were floats before they became codes; none if
  /// they were bytes. A network that trains on them shows what the codes of the input cost.
  struct FloatInputs {
    std::shared_ptr<const BatchSource> training;
    std::shared_ptr<const BatchSource> test;
    std::function<double(const Tensor& y)> score;
  };
  std::optional<FloatInputs> float_inputs = {};
  /// If set, it is called with the integer model. It prints results of its own, and returns
  /// metadata to save with the model.
  std::function<std::map<std::string, std::string>(const IntegerModel& model)> deploy = nullptr;
};

/// Returns a score function: the fraction of rows whose largest output is that of their label. When
/// called, the function throws the errors of ConfusionMatrix.
std::function<double(const Tensor& y)> accuracy_of(std::vector<int32_t> labels, int64_t classes);

/// The most samples that observers see in calibration.
inline constexpr int64_t kCalibrationSamples = 2048;

/// Makes a task from a training and a test part, each a Dataset or TensorDataset. Loss and
/// score_name are those of a classifier. `score` and `outputs` are not set, because they need
/// labels.
/// limit: the number of training samples to use; 0: all of them.
/// Throws: DataError if there are fewer training samples than limit.
template <class Data>
requires std::derived_from<Data, BatchSource> Task make_task(std::string dataset,
                                                             const Data& training,
                                                             const Data& test,
                                                             int64_t limit) {
  const Data limited = limit > 0 ? training.first(limit) : training;
  Task task;
  task.dataset = std::move(dataset);
  task.training = std::make_shared<const Data>(limited);
  task.calibration =
      std::make_shared<const Data>(limited.first(std::min(kCalibrationSamples, limited.size())));
  task.test = std::make_shared<const Data>(test);
  task.example = limited.batch(0, 1).input;
  return task;
}

/// The parts without codes for Task::float_inputs, with the same limit.
template <class Data>
Task::FloatInputs make_float_inputs(const Data& training,
                                    const Data& test,
                                    int64_t limit,
                                    std::function<double(const Tensor& y)> score) {
  return {.training = std::make_shared<const Data>(limit > 0 ? training.first(limit) : training),
          .test = std::make_shared<const Data>(test),
          .score = std::move(score)};
}

/// The same for parts with labels; the score is the accuracy.
template <class Data>
Task make_classification(std::string dataset,
                         const Data& training,
                         const Data& test,
                         int64_t limit) {
  Task task = make_task(std::move(dataset), training, test, limit);
  task.outputs = test.classes();
  task.score = accuracy_of(test.labels(), test.classes());
  return task;
}

}  // namespace quantrain::examples
