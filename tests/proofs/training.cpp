#include "examples/common/training.hpp"

#include <algorithm>

#include "examples/common/flags.hpp"
#include "layers/init.hpp"
#include "tests/proofs/proofs.hpp"

namespace quantrain::proofs {
namespace {

// Batch sizes and learning rates are the defaults of the example programs.
DataLoader loader_of(const Images& images, const Training& training, uint64_t seed) {
  const Dataset& all = images.train;
  return DataLoader(training.limit > 0 ? all.first(std::min(training.limit, all.size())) : all,
                    {.batch = examples::Flags{}.batch, .shuffle = true, .seed = seed});
}

}  // namespace

Sequential train_float(const examples::Network& network,
                       const Images& images,
                       const Training& training,
                       uint64_t seed) {
  manual_seed(seed);
  Sequential net = network.make();
  DataLoader loader = loader_of(images, training, seed);
  examples::train(
      net, loader, {.epochs = training.epochs, .learning_rate = examples::Flags{}.learning_rate});
  return net;
}

void train_on(Module& net, const Images& images, const Training& training, uint64_t seed) {
  DataLoader loader = loader_of(images, training, seed);
  examples::train(net,
                  loader,
                  {.epochs = training.qat_epochs,
                   .first_epoch = training.epochs,
                   .learning_rate = examples::Flags{}.qat_learning_rate});
}

Tensor example_of(const Images& images) { return images.train.batch(0, 1).input; }

}  // namespace quantrain::proofs
