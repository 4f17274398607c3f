#pragma once

#include <vector>

#include "framework/optim/optimizer.hpp"

namespace quantrain {

struct AdamOptions {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;     ///< weight_decay * w is added to the gradient
  bool allow_nonfinite = false;  ///< also steps on gradients that, or whose squares, are not finite
};

/// g = grad + weight_decay * w; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
/// w -= learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).
/// m and v start at 0. t counts the updates of the parameter.
/// State: "m", "v" and "steps".
/// Source: Kingma and Ba 2015, algorithm 1
class Adam : public Optimizer {
 public:
  /// Throws: as Optimizer; DataError also if a beta is outside [0, 1), epsilon is not a positive
  /// normal number, or weight decay is negative or not finite.
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});

 protected:
  Adam(const char* name,
       std::vector<Tensor> parameters,
       const AdamOptions& options,
       bool decoupled);

 private:
  void update(size_t i, Tensor& parameter, const Tensor& grad) override;

  struct Moments {
    Tensor m, v;
    IntegerBuffer steps;
  };
  AdamOptions options_;
  bool decoupled_;
  std::vector<Moments> moments_;
};

struct AdamWOptions {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.01f;    ///< w -= learning_rate * weight_decay * w, before the step
  bool allow_nonfinite = false;  ///< as in AdamOptions
};

/// Adam with decoupled weight decay: the decay does not enter m and v.
/// Source: Loshchilov and Hutter 2019, algorithm 2
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
};

}  // namespace quantrain
