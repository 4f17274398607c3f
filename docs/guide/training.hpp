// The training loop of docs/guide.md.
#pragma once

#include <string>
#include <utility>

#include "framework/autograd/ops.hpp"
#include "framework/autograd/parameters.hpp"
#include "framework/data/loader.hpp"
#include "framework/io/metadata.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/clip.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/layers.hpp"

using namespace quantrain;

/// Trains with Adam. The learning rate rises for 20 steps, then falls along a cosine.
inline void train(Module& net,
                  const Dataset& data,
                  int64_t epochs,
                  float learning_rate,
                  Transform augment = nullptr) {
  net.train();
  DataLoader batches{data, {.batch = 32, .shuffle = true, .augment = std::move(augment)}};
  Adam optimizer{net.parameters(), {.learning_rate = learning_rate}};
  const Schedule schedule =
      cosine_schedule(learning_rate, {.steps = epochs * batches.batches(), .warm_up = 20});
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const Batch& batch : batches.epoch(epoch)) {
      optimizer.set_learning_rate(schedule(step++));
      optimizer.zero_grad();
      Tensor loss = cross_entropy(net(batch.input), batch);
      loss.backward();
      clip_grad_norm(optimizer.parameters(), 5.0f);
      optimizer.step();
    }
  }
}

/// The share of images whose largest logit is that of their label.
inline double accuracy(Module& net, const Dataset& data) {
  return evaluate(net, DataLoader{data, {.batch = 100}}).at("accuracy");
}

/// Saves what a training run needs to continue: the network, the optimizer's state and the step.
inline void save_checkpoint(const Module& net,
                            const Optimizer& optimizer,
                            int64_t step,
                            const std::string& name) {
  save(net, name + ".network", {{"step", metadata_text(step)}});
  save_parameters(name + ".optimizer", optimizer.state());
}

inline int64_t load_checkpoint(Module& net, Optimizer& optimizer, const std::string& name) {
  const auto metadata = load(net, name + ".network");
  load_parameters(name + ".optimizer", optimizer.state());
  return metadata_number<int64_t>(metadata, "step");
}
