#include "examples/common/training.hpp"

#include <utility>

#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/evaluate.hpp"
#include "layers/training/fit.hpp"

namespace quantrain::examples {

Tensor classification_loss(Module& net, Batch& batch) {
  return cross_entropy(net(std::move(batch.input)), batch);
}

std::vector<double> train(Module& net, DataLoader& loader, const TrainingOptions& options) {
  Adam optimizer(net.parameters(), {.learning_rate = options.learning_rate});
  const auto loss = [&](Batch& batch) { return options.loss(net, batch); };
  FitOptions fitting;
  fitting.epochs = options.epochs;
  fitting.shards = options.shards;
  fitting.ranks = options.ranks;
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

double accuracy(Module& net, const Dataset& images) {
  return evaluate(net, DataLoader(images, {.batch = kEvaluationBatch})).at("accuracy");
}

double accuracy(const IntegerModel& model, const Dataset& images) {
  return evaluate(model, DataLoader(images, {.batch = kEvaluationBatch})).at("accuracy");
}

}  // namespace quantrain::examples
