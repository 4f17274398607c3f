#pragma once

#include <vector>

#include "framework/optim/optimizer.hpp"

namespace quantrain {

struct SgdOptions {
  float learning_rate = 0.01f;
  float momentum = 0.0f;
  float weight_decay = 0.0f;
  bool nesterov = false;
  bool allow_nonfinite = false;  ///< step() does not check that gradients are finite
};

/// g = grad + weight_decay * w; v = momentum * v + g;
/// w -= learning_rate * (nesterov ? g + momentum * v : v). v starts at 0.
/// State: "velocity", if there is momentum.
/// Source: Sutskever et al. 2013, in the form of torch.optim.SGD
class Sgd : public Optimizer {
 public:
  /// Throws: as Optimizer; DataError also if momentum is outside [0, 1), weight decay is negative
  /// or not finite, or nesterov is set without momentum.
  explicit Sgd(std::vector<Tensor> parameters, const SgdOptions& options = {});

 private:
  void update(size_t i, Tensor& parameter, const Tensor& grad) override;

  SgdOptions options_;
  std::vector<Tensor> velocity_;
};

}  // namespace quantrain
