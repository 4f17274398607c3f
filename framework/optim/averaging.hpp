#pragma once

#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/scope_stack.hpp"

namespace quantrain {

struct ExponentialAverageOptions {
  float decay = 0.999f;  ///< weight of the old average, in [0, 1)
};

/// average = decay * average + (1 - decay) * w, after each step. The first average is w itself.
///   ExponentialAverage average{net.parameters()};
///   for (..) { ..; optimizer.step(); average.update(); }
///   { const AveragedWeights scope(average); evaluate(net); }
/// Within the scope, the network is run, saved and converted with the averages. The tensors may be
/// parameters, running statistics or any other tensors of floats that are not results of
/// operations.
/// State: "average" of each tensor, and "started", which is 1 after the first update.
/// Source: Polyak and Juditsky 1992; PyTorch's AveragedModel
class ExponentialAverage {
 public:
  /// Throws: DataError if there are no tensors; if a tensor is undefined, holds no floats, is the
  /// result of an operation or is listed twice; or if decay is outside [0, 1).
  explicit ExponentialAverage(std::vector<Tensor> tensors,
                              const ExponentialAverageOptions& options = {});
  ExponentialAverage(const ExponentialAverage&) = delete;
  ExponentialAverage& operator=(const ExponentialAverage&) = delete;

  /// Updates the averages with the current values of the tensors.
  /// Throws: GraphError while an AveragedWeights exists.
  void update();
  /// Like Optimizer::state(): "<index of the tensor>.average" and "started". The returned entries
  /// are handles on the state itself.
  std::vector<NamedState> state() const;

 private:
  friend class AveragedWeights;
  float decay_;
  std::vector<Tensor> tensors_;
  std::vector<Tensor> averages_;
  IntegerBuffer started_;  // [1]: 0 before the first update, else 1
  int scopes_ = 0;         // number of existing AveragedWeights
};

/// During the lifetime of an AveragedWeights, the tensors hold their averages. The destructor
/// restores their old values, even if the tensors were written to in the meantime. If another
/// AveragedWeights of the same tensors began later and still lives, it restores them instead.
class AveragedWeights {
 public:
  /// Throws: GraphError before the first update; DataError if the state, which may come from a
  /// file, is invalid or not finite.
  [[nodiscard]] explicit AveragedWeights(ExponentialAverage& average);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  struct Kept {
    Tensor tensor;
    bool operator==(const Kept& other) const { return tensor.same_as(other.tensor); }
  };

  ExponentialAverage& average_;
  ScopeStack<Kept, Buffer<float>, AveragedWeights> kept_;
};

}  // namespace quantrain
