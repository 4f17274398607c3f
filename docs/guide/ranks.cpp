// Trains the network of docs/guide.md on the ranks that mpirun has started: mpirun -n 4 ranks
#include <iostream>

#include "framework/distributed/mpi/mpi.hpp"
#include "layers/evaluate.hpp"
#include "layers/training/data_parallel.hpp"
#include "layers/training/fit.hpp"
#include "shapes.hpp"
#include "training.hpp"

/// An epoch of a loop of your own.
inline void train_an_epoch(Module& net,
                           Adam& optimizer,
                           const DataLoader& batches,
                           int64_t epoch,
                           DataParallel& parallel) {
  net.train();
  for (ShardedBatch& batch : parallel.epoch(batches, epoch)) {
    optimizer.zero_grad();
    parallel.backward(batch, [&](Batch& shard) { return cross_entropy(net(shard.input), shard); });
    optimizer.step();
  }
}

int main() try {
  MpiRanks ranks;
  manual_seed(1);
  Sequential net = make_network();
  DataLoader batches{shapes(3000, 1), {.batch = 64, .shuffle = true, .augment = random_shift(1)}};
  const Dataset test_set = shapes(500, 2);
  Adam optimizer{net.parameters(), {.learning_rate = 5e-3f}};
  fit(net,
      optimizer,
      batches,
      [&](Batch& batch) { return cross_entropy(net(batch.input), batch); },
      {.epochs = 3,
       .shards = 8,
       .ranks = &ranks,
       .evaluate = [&] { return evaluate(net, DataLoader{test_set}, {"accuracy"}); },
       .checkpoints = {.folder = "ranks", .resume = true},
       .label = "float"});

  DataParallel parallel(net, optimizer, {.shards = 8, .ranks = &ranks});
  parallel.check_same({{"epochs", "1"}});
  train_an_epoch(net, optimizer, batches, 3, parallel);
  if (ranks.is_first()) save(net, "float.safetensors");
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
