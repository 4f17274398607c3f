#include <cstdio>
#include <optional>

#include "examples/common/flags.hpp"
#include "examples/common/training.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/proofs/results.hpp"

namespace quantrain::proofs {
namespace {

using Json = Results::Json;

constexpr quant::Simulation kSimulations[] = {quant::Simulation::kInteger,
                                              quant::Simulation::kFloat};

Json settings_of(const Images& images,
                 const examples::Network& network,
                 const Training& training,
                 uint64_t seed,
                 int bits,
                 const char* simulation) {
  return {{"data", images.name},
          {"network", network.name},
          {"epochs", training.epochs},
          {"qat_epochs", training.qat_epochs},
          {"limit", training.limit},
          {"qat_lr", examples::Flags{}.qat_learning_rate},
          {"seed", seed},
          {"bits", bits},
          {"simulation", simulation}};
}

Json settings_of(const Images& images,
                 const examples::Network& network,
                 const Training& training,
                 uint64_t seed,
                 int bits,
                 quant::Simulation simulation) {
  const bool integer = simulation == quant::Simulation::kInteger;
  return settings_of(images, network, training, seed, bits, integer ? "integer" : "float");
}

/// The settings of the control experiment: the float network, trained further without quantization.
/// The quantized networks are compared with it.
Json settings_of_float(const Images& images,
                       const examples::Network& network,
                       const Training& training,
                       uint64_t seed) {
  return settings_of(images, network, training, seed, 32, "none");
}

Json measure_float(const examples::Network& network,
                   Sequential& trained,
                   const Images& images,
                   const AccuracyOptions& options,
                   uint64_t seed) {
  Sequential net = network.make();
  copy_state(trained, net);
  train_on(net, images, options.training, seed);
  return {{"float", examples::accuracy(net, images.test)}};
}

/// Accuracies of three networks: the float network; the network trained with the given simulation,
/// measured in that simulation; and the same network deployed, which always computes in integers.
Json measure(const examples::Network& network,
             Sequential& trained,
             const Images& images,
             const AccuracyOptions& options,
             uint64_t seed,
             int bits,
             quant::Simulation simulation) {
  Sequential net = network.make();
  copy_state(trained, net);
  quant::QConfig config = quant::QConfig::bits(bits, bits);
  config.simulation = simulation;
  quant::prepare_qat(net, example_of(images), config);
  train_on(net, images, options.training, seed);
  const double simulated = examples::accuracy(net, images.test);
  const quant::DeployedMode deployed(net);
  return {{"float", examples::accuracy(trained, images.test)},
          {"simulated", simulated},
          {"deployed", examples::accuracy(net, images.test)}};
}

void print_statistics(const std::vector<double>& values) {
  const auto [mean, deviation] = statistics(values);
  std::printf("  %8.3f +- %.3f", 100.0 * mean, 100.0 * deviation);
}

void print_table(const Subjects& subjects, const AccuracyOptions& options, const Results& results) {
  std::printf(
      "Test accuracy in %%, mean and deviation over %zu seeds; the last column has the differences "
      "between runs of the same seed:\n%-16s %-14s %5s%19s%19s%19s%19s%19s%19s\n",
      options.seeds.size(),
      "data",
      "network",
      "bits",
      "float",
      "float, longer",
      "QAT in integers",
      "QAT in float",
      "float QAT deployed",
      "integers - float");
  for (const Images& images : subjects.data) {
    for (const examples::Network& network : subjects.networks) {
      for (const int bits : options.bits) {
        std::vector<double> trained, longer, integers, floats, deployed, differences;
        for (const uint64_t seed : options.seeds) {
          const auto value = [&](quant::Simulation simulation, const char* what) {
            const Json settings =
                settings_of(images, network, options.training, seed, bits, simulation);
            return results.find(settings)->at(what).get<double>();
          };
          const Json control = settings_of_float(images, network, options.training, seed);
          longer.push_back(results.find(control)->at("float").get<double>());
          trained.push_back(value(quant::Simulation::kInteger, "float"));
          integers.push_back(value(quant::Simulation::kInteger, "deployed"));
          floats.push_back(value(quant::Simulation::kFloat, "simulated"));
          deployed.push_back(value(quant::Simulation::kFloat, "deployed"));
          differences.push_back(integers.back() - floats.back());
        }
        std::printf("%-16s %-14s  W%dA%d", images.name.c_str(), network.name.c_str(), bits, bits);
        for (const auto& column : {trained, longer, integers, floats, deployed, differences})
          print_statistics(column);
        std::printf("\n");
      }
    }
  }
}

}  // namespace

void measure_accuracy(const Subjects& subjects, const AccuracyOptions& options) {
  Results results(options.results);
  for (const Images& images : subjects.data) {
    for (const examples::Network& network : subjects.networks) {
      for (const uint64_t seed : options.seeds) {
        std::optional<Sequential> trained;  // trained once, for all runs that start from it
        const auto start = [&]() -> Sequential& {
          if (!trained) trained = train_float(network, images, options.training, seed);
          return *trained;
        };
        const Json control = settings_of_float(images, network, options.training, seed);
        if (results.find(control) == nullptr)
          results.add(control, measure_float(network, start(), images, options, seed));
        for (const int bits : options.bits) {
          for (const quant::Simulation simulation : kSimulations) {
            const Json settings =
                settings_of(images, network, options.training, seed, bits, simulation);
            if (results.find(settings) != nullptr) continue;
            results.add(settings,
                        measure(network, start(), images, options, seed, bits, simulation));
          }
        }
      }
    }
  }
  print_table(subjects, options, results);
}

}  // namespace quantrain::proofs
