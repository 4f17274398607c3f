#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/data/tensor_dataset.hpp"
#include "layers/layers.hpp"

// Data whose few large values matter: a range that cuts them off ruins them. The data follow from a
// seed.
namespace quantrain::proofs {

struct RareEvents {
  std::string name;   ///< such as "rare steps"
  std::string score;  ///< what score() returns, with its unit
  bool smaller_is_better = false;
  std::function<Sequential()> make;
  TensorDataset training;
  TensorDataset rare;  ///< unseen samples, only of the rare kind
  std::function<Tensor(Module& net, Batch& batch)> loss;
  /// From the network's outputs for `rare`.
  std::function<double(const Tensor& outputs)> measure;
};

/// A regression of 4 inputs in [-0.1, 0.1]. One of 256 samples is ten times larger, and so is its
/// target, up to about 10. The score is the root of the mean squared error of the large ones.
RareEvents rare_steps(uint64_t seed);

/// Three classes of signals of 32 values: noise, noise with a bump of height 0.2, and, one sample
/// in 256, noise with a bump of height 0.5 to 1. The score is the recall of the last class, in
/// percent.
RareEvents rare_peaks(uint64_t seed);

}  // namespace quantrain::proofs
