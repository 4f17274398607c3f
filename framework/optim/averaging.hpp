#pragma once

#include <vector>

#include "framework/autograd/named_tensor.hpp"
#include "framework/core/buffer.hpp"

namespace quantrain {

struct ExponentialAverageOptions {
  float decay = 0.999f;  ///< weight of the past, in [0, 1)
};

/// average = decay * average + (1 - decay) * w, after each step; the first one is w itself.
///   ExponentialAverage average{net.parameters()};
///   for (..) { ..; optimizer.step(); average.update(); }
///   { const AveragedWeights scope(average); evaluate(net); }
/// What the network computes in the scope, saves or is converted to has the averages. They may be
/// of any tensors of floats that nothing computed: parameters, also running statistics.
/// State: "average" of each tensor, and "started", 1 from the first update on.
/// Source: Polyak and Juditsky 1992; PyTorch's AveragedModel
class ExponentialAverage {
 public:
  /// Throws: DataError if there are no tensors, one is listed twice, is undefined, holds no floats or
  /// is the result of an operation; or if decay is outside [0, 1).
  explicit ExponentialAverage(std::vector<Tensor> tensors,
                              const ExponentialAverageOptions& options = {});
  ExponentialAverage(const ExponentialAverage&) = delete;
  ExponentialAverage& operator=(const ExponentialAverage&) = delete;

  /// Takes the tensors as they are now.
  /// Throws: GraphError while AveragedWeights are in them.
  void update();
  /// As Optimizer::state(): "<index of the tensor>.average" and "started", handles on the state
  /// itself.
  std::vector<NamedTensor> state() const;

 private:
  friend class AveragedWeights;
  void check_loaded() const;

  float decay_;
  std::vector<Tensor> tensors_;
  std::vector<Tensor> averages_;
  Tensor started_;  // [1]: 0 before the first update, else 1
  int scopes_ = 0;  // AveragedWeights that live
};

/// While it lives, the tensors hold their averages; then they are again what they were, whatever
/// was written to them meanwhile.
class AveragedWeights {
 public:
  /// Throws: GraphError before the first update; DataError if the state, loaded from a file perhaps,
  /// is not finite.
  explicit AveragedWeights(ExponentialAverage& average);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  ExponentialAverage& average_;
  std::vector<Buffer<float>> kept_;
};

}  // namespace quantrain
