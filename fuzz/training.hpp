#pragma once

#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/training/fit.hpp"

namespace quantrain::fuzz {

/// Trains a small network for two epochs of two steps, with checkpoints in this folder.
inline FitResult train(const std::string& folder, int64_t every, bool resume) {
  manual_seed(1);
  Sequential net{Linear{2, 3}, Dropout{}, Linear{3, 1}};
  Sgd optimizer(net.parameters(), {.learning_rate = 0.01f, .momentum = 0.9f});
  const std::vector<float> x{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f};
  const std::vector<float> y{1.0f, 2.0f, 3.0f, 4.0f};
  DataLoader loader(TensorDataset(SampleArray::floats({4, 2}, x), SampleArray::floats({4, 1}, y)),
                    {.batch = 2, .shuffle = true});
  const auto loss = [&](Batch& batch) { return mse_loss(net(batch.input), batch.targets[0]); };
  return fit(net,
             optimizer,
             loader,
             loss,
             {.epochs = 2,
              .evaluate =
                  [] {
                    return Metrics{{"error", 0.5}};
                  },
              .early_stopping = {.metric = "error", .smaller_is_better = true},
              .checkpoints = {.folder = folder, .every = every, .resume = resume}});
}

}  // namespace quantrain::fuzz
