#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/networks.hpp"
#include "framework/data/dataset.hpp"

// What the tests show on small networks and few images, shown on whole ones. Each proof prints a
// table; those of equality return whether it held.
namespace quantrain::proofs {

struct Images {
  std::string name;
  Dataset train;
  Dataset test;
};

/// On what a proof runs.
struct Subjects {
  std::vector<Images> data;
  std::vector<examples::Network> networks;
};

/// How long networks are trained first.
struct Training {
  int64_t epochs = 1;
  int64_t qat_epochs = 1;
  int64_t limit = 12800;  ///< first training images only; 0: all
};

/// A network that was trained in float, from a seed that its data's order shares.
Sequential train_float(const examples::Network& network,
                       const Images& images,
                       const Training& training,
                       uint64_t seed);
/// Trains a copy of it on, prepared or in float.
void train_on(Module& net, const Images& images, const Training& training, uint64_t seed);
/// One training image.
Tensor example_of(const Images& images);

/// verify_parity on all test images, at each number of bits of weights and activations.
/// `every_layer` prints each layer's line, not only those of networks that differ.
bool prove_parity(const Subjects& subjects,
                  const Training& training,
                  const std::vector<int>& bits,
                  bool every_layer);

/// verify_parity of so many random networks.
bool prove_random_parity(int64_t networks);

/// The saved model is the same byte for byte, trained with 1 and 2 threads and on each instruction
/// set that has fused multiply-adds.
bool prove_determinism(const Subjects& subjects, const Training& training);

/// Sums of so many terms at most, by every operation that makes long ones, are as exact as pairwise
/// sums.
bool prove_sums(int64_t most);

struct AccuracyOptions {
  Training training{.epochs = 3, .qat_epochs = 1, .limit = 0};
  std::vector<uint64_t> seeds{0, 1, 2, 3, 4};
  std::vector<int> bits{8, 4};
  std::string results = {};  ///< a JSON line for each result is appended; what it has is not redone
};

/// Test accuracy after QAT that simulates with integers and with floats, and after as much training
/// without quantization, all from the same float weights: mean and deviation over seeds. Processes
/// that run at the same time may share the file of results.
void measure_accuracy(const Subjects& subjects, const AccuracyOptions& options);

/// Test accuracy after quantization without training, at each number of bits, with each kind of
/// observer; from the same float weights.
void measure_observers(const Subjects& subjects,
                       const Training& training,
                       const std::vector<int>& bits);

}  // namespace quantrain::proofs
