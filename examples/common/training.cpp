#include "examples/common/training.hpp"

#include <utility>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "framework/training/metrics.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/training/fit.hpp"

namespace quantrain::examples {

std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options) {
  Adam optimizer(net.parameters(), {.learning_rate = options.learning_rate});
  // Images are moved: the first quantization frees them.
  const auto loss = [&](Batch& batch) {
    return cross_entropy(net(std::move(batch.images)), batch.labels);
  };
  FitOptions fitting;
  fitting.epochs = options.epochs;
  fitting.first_epoch = options.first_epoch;
  fitting.schedule =
      cosine_schedule(options.learning_rate, {.steps = options.epochs * loader.batches()});
  fitting.begin_epoch = options.begin_epoch;
  if (options.evaluated != nullptr) {
    fitting.evaluate = [&] { return Metrics{{"accuracy", accuracy(net, *options.evaluated)}}; };
  }
  fitting.checkpoints = options.checkpoints;
  fitting.label = options.label;
  fitting.log = options.log;
  fitting.page = options.page;
  const FitResult result = fit(net, optimizer, loader, loss, fitting);
  std::vector<double> seconds;
  for (const EpochReport& epoch : result.epochs) seconds.push_back(epoch.seconds);
  return seconds;
}

double accuracy(Module& net, const Dataset& images) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  ConfusionMatrix matrix(images.classes());
  for (const Batch& batch : DataLoader(images, {.batch = kEvaluationBatch}))
    matrix.add(net(batch.images), batch.labels);
  return matrix.accuracy();
}

double accuracy(const IntegerModel& model, const Dataset& images) {
  ConfusionMatrix matrix(images.classes());
  std::vector<int32_t> classes;
  for (const Batch& batch : DataLoader(images, {.batch = kEvaluationBatch})) {
    classes.resize(batch.labels.size());
    model.classify(batch.bytes(), classes);
    matrix.add(classes, batch.labels);
  }
  return matrix.accuracy();
}

}  // namespace quantrain::examples
