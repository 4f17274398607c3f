#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "examples/common/training.hpp"
#include "framework/data/batch_source.hpp"
#include "framework/data/loader.hpp"
#include "framework/integer/integer_model.hpp"
#include "layers/training/epoch_report.hpp"

namespace quantrain::examples {

/// What a network is trained on, and what says how good it is.
struct Task {
  std::string dataset;  ///< its name, for the report
  /// What the samples depend on besides the common flags, for checkpoints: "--shift 2".
  std::string settings = {};
  std::shared_ptr<const BatchSource> training;
  std::shared_ptr<const BatchSource> calibration;  ///< some of these
  std::shared_ptr<const BatchSource> test;
  Tensor example;       ///< one sample [1, ...], with the codes that it is made from
  int64_t outputs = 0;  ///< of the network: classes
  Transform augment = nullptr;
  std::function<Tensor(Module& net, Batch& batch)> loss = classification_loss;
  /// The score and its name: "accuracy", which is printed in percent, or another, where 1 is best,
  /// too.
  std::string score_name = "accuracy";
  /// Of what a network gives for the test samples, in their order.   Shapes: y [N, outputs].
  std::function<double(const Tensor& y)> score;
  /// What is to be done with the integer model, if anything: it prints, and returns the metadata of
  /// the saved model.
  std::function<std::map<std::string, std::string>(const IntegerModel& model)> deploy = nullptr;
};

/// Fraction of rows whose largest output is their label's.   Throws: as ConfusionMatrix.
std::function<double(const Tensor& y)> accuracy_of(std::vector<int32_t> labels, int64_t classes);

/// Samples that observers see.
inline constexpr int64_t kCalibrationSamples = 2048;

/// Of two parts, each a Dataset or TensorDataset; loss and score are still those of a classifier,
/// without its labels. limit: training samples, 0 for all.
/// Throws: DataError if there are fewer.
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
  task.example = limited.batch(0, 1).images;
  return task;
}

/// The same with labels.
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
