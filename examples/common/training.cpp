#include "examples/common/training.hpp"

#include <utility>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/training/fit.hpp"

namespace quantrain::examples {

Tensor classification_loss(Module& net, Batch& batch) {
  return cross_entropy(net(std::move(batch.input)), batch.labels);
}

std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options) {
  Adam optimizer(net.parameters(), {.learning_rate = options.learning_rate});
  const auto loss = [&](Batch& batch) { return options.loss(net, batch); };
  FitOptions fitting;
  fitting.epochs = options.epochs;
  fitting.first_epoch = options.first_epoch;
  fitting.schedule =
      cosine_schedule(options.learning_rate, {.steps = options.epochs * loader.batches()});
  fitting.begin_epoch = options.begin_epoch;
  fitting.evaluate = options.evaluate;
  fitting.checkpoints = options.checkpoints;
  fitting.label = options.label;
  fitting.log = options.log;
  fitting.page = options.page;
  const FitResult result = fit(net, optimizer, loader, loss, fitting);
  std::vector<double> seconds;
  for (const EpochReport& epoch : result.epochs) seconds.push_back(epoch.seconds);
  return seconds;
}

Tensor outputs(Module& net, const DataLoader& batches) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  std::vector<float> values;
  int64_t samples = 0;
  for (const Batch& batch : batches) {
    const Tensor y = net(batch.input);
    const Floats floats = y.floats();
    values.insert(values.end(), floats.data(), floats.data() + y.elements());
    samples += batch.size();
  }
  return Tensor::from({samples, static_cast<int64_t>(values.size()) / samples}, values);
}

Tensor outputs(const IntegerModel& model, const DataLoader& batches) {
  std::vector<float> values;
  int64_t samples = 0;
  for (const Batch& batch : batches) {
    const size_t before = values.size();
    values.resize(before + static_cast<size_t>(batch.size() * model.output_size()));
    model.run(batch.bytes(), std::span(values).subspan(before));
    samples += batch.size();
  }
  return Tensor::from({samples, model.output_size()}, values);
}

double accuracy(Module& net, const Dataset& images) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  ConfusionMatrix matrix(images.classes());
  for (const Batch& batch : DataLoader(images, {.batch = kEvaluationBatch}))
    matrix.add(net(batch.input), batch.labels);
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
