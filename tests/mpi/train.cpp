// mpi_train FOLDER [BITS [what RANK STEP]]: trains a small network in shards, in float and then
// with quantization (BITS, 8 if not given), on the ranks that a launcher of MPI has started.
// Without a launcher, in this process alone. Checkpoints go into FOLDER, from which a run resumes,
// and FOLDER/model.bin gets the trained network. what: "kill", "throw", "leave" (by an exception
// where the others wait for its gradients) or "cut" (receives less than the others send), which
// rank RANK does after step STEP of the float training; "seed" and "isa" take another seed and
// other kernels from the start.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/random.hpp"
#include "framework/distributed/mpi/mpi.hpp"
#include "framework/optim/adam.hpp"
#include "layers/evaluate.hpp"
#include "layers/init.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"

using namespace quantrain;

namespace {

/// Images of noise with a bright corner: which one is the label.
Dataset images(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const auto label = static_cast<int32_t>(random.below(4));
    for (int64_t p = 0; p < 64; ++p) {
      const bool bright = (p / 8 > 3) == (label > 1) && (p % 8 > 3) == (label % 2 == 1);
      bytes.push_back(static_cast<uint8_t>(random.below(160) + (bright ? 95 : 0)));
    }
    labels.push_back(label);
  }
  return Dataset({n, 8, 8, 1}, bytes, labels, 4);
}

struct Fault {
  std::string what;
  int64_t rank = -1;
  int64_t step = 0;
};

/// Sends each rank 100 bytes, and receives `received` from each.
void send_too_much(Communicator& ranks, int64_t received) {
  const auto size = static_cast<size_t>(ranks.size());
  ranks.barrier();
  ranks.expect_exchanges();
  const auto exchange = ranks.start_exchange(0,
                                             Communicator::Bytes(100),
                                             std::vector<Communicator::Slice>(size, {0, 100}),
                                             std::vector<int64_t>(size, received));
  while (!exchange->test()) Communicator::rest(std::chrono::steady_clock::now());
  ranks.end_exchanges();
}

void train(const std::string& folder, int bits, const Fault& fault, Communicator* ranks) {
  const bool is_first = ranks == nullptr || ranks->is_first();
  const bool fails = ranks != nullptr && ranks->rank() == fault.rank;
  if (fails && fault.what == "isa")
    set_isa(chosen_isa() == Isa::kReference ? usable_isas().back() : Isa::kReference);
  manual_seed(fails && fault.what == "seed" ? 8 : 7);
  Sequential net{Conv2d{1, 4, {.padding = 1}},
                 BatchNorm2d{4},
                 ReLU{},
                 MaxPool2d{2},
                 Flatten{},
                 Dropout{0.1f},
                 Linear{64, 256},  // enough weights for messages during the backward pass
                 ReLU{},
                 Linear{256, 4}};
  const Dataset training = images(84, 1);
  const Dataset test = images(40, 2);
  DataLoader loader(training,
                    {.batch = 16, .shuffle = true, .seed = 3, .augment = random_shift(1)});
  const auto loss = [&](Batch& batch) { return cross_entropy(net(batch.input), batch); };
  FitOptions options{.epochs = 3,
                     .shards = 8,
                     .ranks = ranks,
                     .evaluate = [&] { return evaluate(net, DataLoader(test)); },
                     .checkpoints = {.folder = folder + "/float", .every = 2, .resume = true},
                     .label = "float"};
  options.after_step = [&](int64_t step, float) {
    if (step != fault.step) return;
    if (fault.what == "cut" && ranks != nullptr) send_too_much(*ranks, fails ? 1 : 100);
    if (!fails) return;
    if (fault.what == "kill") ::raise(SIGKILL);
    if (fault.what == "leave") ranks->expect_exchanges();
    if (fault.what == "throw" || fault.what == "leave")
      throw DataError("test", "this rank gives up");
  };
  {
    Adam optimizer(net.parameters(), {.learning_rate = 0.01f});
    fit(net, optimizer, loader, loss, options);
  }
  quant::prepare_qat(net, training.batch(0, 8).input, quant::QConfig::bits(bits, bits));
  Adam optimizer(net.parameters(), {.learning_rate = 0.002f});
  options.epochs = 2;
  options.after_step = nullptr;
  options.label = "QAT";
  options.checkpoints.folder = folder + "/qat";
  fit(net, optimizer, loader, loss, options);
  if (!is_first) return;
  save(net, folder + "/network.safetensors");
  quant::convert(net, training.batch(0, 8).input).save(folder + "/model.safetensors");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  const int bits = argc > 2 ? std::atoi(argv[2]) : 8;
  Fault fault;
  if (argc > 5) fault = {argv[3], std::atoll(argv[4]), std::atoll(argv[5])};
  set_threads(1);
  if (!MpiRanks::is_launched()) {
    train(argv[1], bits, fault, nullptr);
    return 0;
  }
  MpiRanks ranks;
  try {
    train(argv[1], bits, fault, &ranks);
    return 0;
  } catch (const std::exception& error) {
    ranks.fail(error.what());
    std::cerr << ranks.name(ranks.rank()) << ": " << error.what() << '\n';
    return 1;
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
