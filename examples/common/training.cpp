#include "examples/common/training.hpp"

#include <algorithm>
#include <cmath>

#include "examples/common/progress.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/evaluation_mode.hpp"

namespace quantrain::examples {
namespace {

/// Index of the largest value of each row, the lowest among equals.
std::vector<int32_t> argmax_rows(const Tensor& logits) {
  const int64_t classes = logits.shape().back();
  const Floats values = logits.floats();
  std::vector<int32_t> best;
  for (int64_t begin = 0; begin < logits.elements(); begin += classes) {
    const float* const row = values.data() + begin;
    best.push_back(static_cast<int32_t>(std::max_element(row, row + classes) - row));
  }
  return best;
}

}  // namespace

std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options) {
  net.train();
  Adam optimizer(net.parameters(), {.learning_rate = options.learning_rate});
  const Schedule schedule =
      cosine_schedule(options.learning_rate, {.steps = options.epochs * loader.batches()});
  std::vector<double> seconds;
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const std::string number = std::to_string(epoch + 1) + '/' + std::to_string(options.epochs);
    Progress progress(options.label.empty() ? "" : options.label + " epoch " + number,
                      loader.samples().value());
    for (Batch& batch : loader.epoch(options.first_epoch + epoch)) {
      optimizer.set_learning_rate(schedule(step++));
      optimizer.zero_grad();
      // Moved: the first quantization frees them.
      Tensor loss = cross_entropy(net(std::move(batch.images)), batch.labels);
      if (!std::isfinite(loss.item())) {
        throw DataError("training",
                        "the loss is ",
                        loss.item(),
                        " in step ",
                        step,
                        ": the learning rate ",
                        options.learning_rate,
                        " may be too large");
      }
      loss.backward();
      optimizer.step();
      progress.step(batch.size(), loss.item());
    }
    seconds.push_back(progress.finish());
  }
  return seconds;
}

double accuracy(Module& net, const Dataset& images) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  int64_t correct = 0;
  for (const Batch& batch : DataLoader(images, {.batch = kEvaluationBatch})) {
    const std::vector<int32_t> predicted = argmax_rows(net(batch.images));
    for (size_t i = 0; i < predicted.size(); ++i)
      correct += predicted[i] == batch.labels[i] ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(images.size());
}

double accuracy(const IntegerModel& model, const Dataset& images) {
  int64_t correct = 0;
  std::vector<int32_t> classes;
  for (const Batch& batch : DataLoader(images, {.batch = kEvaluationBatch})) {
    classes.resize(batch.labels.size());
    model.classify(batch.bytes(), classes);
    for (size_t i = 0; i < batch.labels.size(); ++i)
      correct += classes[i] == batch.labels[i] ? 1 : 0;
  }
  return static_cast<double>(correct) / static_cast<double>(images.size());
}

}  // namespace quantrain::examples
