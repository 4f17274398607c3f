#include "quant/analysis/parity.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "examples/common/training.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/quant/random_network.hpp"

namespace quantrain::proofs {
namespace {

/// Totals over the layers of one or more networks.
struct Sum {
  int64_t integers = 0;
  int64_t different = 0;
  int64_t max_difference = 0;
  int64_t top1_disagreements = 0;
  int64_t codes_from_floats_different = 0;

  void add(const quant::Parity& parity) {
    for (const quant::LayerParity& layer : parity.layers) {
      integers += layer.codes;
      different += layer.different;
      max_difference = std::max(max_difference, layer.max_difference);
    }
    top1_disagreements += parity.top1_disagreements;
    codes_from_floats_different += parity.codes_from_floats_different;
  }
  bool equal() const {
    return different == 0 && top1_disagreements == 0 && codes_from_floats_different == 0;
  }
};

void print_parity(const quant::Parity& parity) {
  std::fflush(stdout);
  std::cout << parity;
  std::cout << std::flush;
}

}  // namespace

bool prove_parity(const Subjects& subjects,
                  const Training& training,
                  const std::vector<int>& bits,
                  bool every_layer) {
  constexpr uint64_t kSeed = 0;
  std::printf("Simulation against integers, every layer's output, on all test images:\n");
  std::printf("%-16s %-14s %5s %8s %7s %12s %8s %8s %8s %8s %8s %9s\n",
              "data",
              "network",
              "bits",
              "images",
              "layers",
              "integers",
              "differ",
              "at most",
              "logits",
              "differ",
              "top-1",
              "accuracy");
  bool equal = true;
  for (const Images& images : subjects.data) {
    const Tensor example = example_of(images);
    for (const examples::Network& network : subjects.networks) {
      const Sequential trained = train_float(network, images, training, kSeed);
      for (const int b : bits) {
        Sequential net = network.make();
        copy_state(trained, net);
        quant::prepare_qat(net, example, quant::QConfig::bits(b, b));
        train_on(net, images, training, kSeed);
        const quant::IntegerModel model = quant::convert(net, example);
        const quant::Parity parity = quant::verify_parity(
            net, model, DataLoader(images.test, {.batch = examples::kEvaluationBatch}));
        Sum sum;
        sum.add(parity);
        std::printf(
            "%-16s %-14s  W%dA%d %8lld %7zu %12lld %8lld %8lld %8lld %8lld %8lld %7.2f %%\n",
            images.name.c_str(),
            network.name.c_str(),
            b,
            b,
            static_cast<long long>(parity.images),
            model.program().steps.size(),
            static_cast<long long>(sum.integers),
            static_cast<long long>(sum.different),
            static_cast<long long>(sum.max_difference),
            static_cast<long long>(parity.logits),
            static_cast<long long>(parity.logits_different),
            static_cast<long long>(sum.top1_disagreements),
            100.0 * examples::accuracy(model, images.test));
        if (every_layer || !sum.equal()) print_parity(parity);
        std::fflush(stdout);
        equal = equal && sum.equal();
      }
    }
  }
  return equal;
}

bool prove_random_parity(int64_t networks) {
  Sum all;
  int64_t layers = 0;
  int64_t unequal = 0;
  // Networks that throw a QuantError, because their training diverged so far that integers cannot
  // represent the ratio of two scales.
  int64_t refused = 0;
  for (int64_t i = 0; i < networks; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    quant::test::RandomNetwork network = quant::test::random_network(seed);
    quant::Parity parity;
    try {
      parity = quant::test::train_and_verify(network, seed);
    } catch (const QuantError& error) {
      ++refused;
      std::printf("random network %lld is refused: %s\n", static_cast<long long>(i), error.what());
      continue;
    }
    Sum sum;
    sum.add(parity);
    all.add(parity);
    layers += static_cast<int64_t>(parity.layers.size());
    if (sum.equal()) continue;
    ++unequal;
    std::printf(
        "random network %lld: %s\n", static_cast<long long>(i), network.description.c_str());
    print_parity(parity);
  }
  std::printf(
      "Random networks: %lld, with %lld layers and %lld integers; %lld networks and %lld integers "
      "differ; %lld more are refused\n",
      static_cast<long long>(networks - refused),
      static_cast<long long>(layers),
      static_cast<long long>(all.integers),
      static_cast<long long>(unequal),
      static_cast<long long>(all.different),
      static_cast<long long>(refused));
  std::fflush(stdout);
  return unequal == 0 && refused <= networks / 1000;
}

}  // namespace quantrain::proofs
