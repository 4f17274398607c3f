#pragma once

#include <vector>

#include "framework/optim/optimizer.hpp"

namespace quantrain {

struct RmsPropOptions {
  float learning_rate = 0.01f;
  float alpha = 0.99f;  ///< weight of the old value in each running average
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;     ///< weight_decay * w is added to the gradient
  float momentum = 0.0f;         ///< 0: none
  bool centered = false;         ///< divide by the standard deviation of the gradient
  bool allow_nonfinite = false;  ///< also steps on gradients that, or whose squares, are not finite
};

/// g = grad + weight_decay * w; v = alpha * v + (1 - alpha) * g^2; d = g / (sqrt(v) + epsilon);
/// w -= learning_rate * d, or with momentum: u = momentum * u + d, w -= learning_rate * u.
/// Centered: m = alpha * m + (1 - alpha) * g, and sqrt(max(v - m^2, 0)) replaces sqrt(v).
/// v, m and u start at 0.
/// State: "square"; "mean", if centered; "velocity", if there is momentum.
/// Source: Hinton 2012, lecture 6e; for centered, Graves 2013; in the form of torch.optim.RMSprop
class RmsProp : public Optimizer {
 public:
  /// Throws: as Optimizer; DataError also if alpha or momentum is outside [0, 1), epsilon is not
  /// positive and normal, or weight decay is negative or not finite.
  explicit RmsProp(std::vector<Tensor> parameters, const RmsPropOptions& options = {});

 private:
  void update(size_t i, Tensor& parameter, const Tensor& grad) override;

  struct State {
    Tensor square, mean, velocity;  // undefined if not used
  };
  RmsPropOptions options_;
  std::vector<State> state_of_;
};

}  // namespace quantrain
