#include <algorithm>
#include <cstdio>

#include "examples/common/training.hpp"
#include "framework/data/loader.hpp"
#include "layers/state.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/proofs/proofs.hpp"

namespace quantrain::proofs {
namespace {

/// Accuracy of a float network after quantization without training, with ranges from one kind of
/// observer.
double accuracy_with(const quant::ObserverSpec& observer,
                     const examples::Network& network,
                     Sequential& trained,
                     const Images& images,
                     int bits) {
  constexpr int64_t kCalibrationImages = 2048;
  Sequential net = network.make();
  copy_state(trained, net);
  quant::QConfig config = quant::QConfig::bits(bits, bits);
  config.model.activation.observer = observer;
  quant::prepare_ptq(net, example_of(images), config);
  const Dataset some = images.train.first(std::min(kCalibrationImages, images.train.size()));
  quant::calibrate(net, DataLoader(some, {.batch = examples::kEvaluationBatch}));
  const quant::DeployedMode deployed(net);
  return examples::accuracy(net, images.test);
}

}  // namespace

void measure_observers(const Subjects& subjects,
                       const Training& training,
                       const std::vector<int>& bits) {
  const std::vector<quant::ObserverSpec> observers = quant::observer_specs();
  std::printf("Test accuracy, in %%, of networks quantized after training:\n%-16s %-14s %5s",
              "data",
              "network",
              "bits");
  std::printf("%16s", "float");
  for (const quant::ObserverSpec& observer : observers)
    std::printf("%16s", std::string(quant::kind(observer)).c_str());
  std::printf("\n");
  for (const Images& images : subjects.data) {
    for (const examples::Network& network : subjects.networks) {
      Sequential trained = train_float(network, images, training, 0);
      for (const int each : bits) {
        std::printf("%-16s %-14s  W%dA%d", images.name.c_str(), network.name.c_str(), each, each);
        std::printf("%16.2f", 100.0 * examples::accuracy(trained, images.test));
        for (const quant::ObserverSpec& observer : observers) {
          const double accuracy = accuracy_with(observer, network, trained, images, each);
          std::printf("%16.2f", 100.0 * accuracy);
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace quantrain::proofs
