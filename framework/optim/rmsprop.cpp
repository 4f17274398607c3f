#include "framework/optim/rmsprop.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace quantrain {

RmsProp::RmsProp(std::vector<Tensor> parameters, const RmsPropOptions& options)
    : Optimizer("rmsprop",
                std::move(parameters),
                options.learning_rate,
                options.allow_nonfinite,
                kLargestWithFiniteSquare),
      options_(options) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  check_option("alpha", options.alpha, 0.0f, 1.0f);
  check_option("epsilon", options.epsilon, std::numeric_limits<float>::min(), kInfinity);
  check_option("weight decay", options.weight_decay, 0.0f, kInfinity);
  check_option("momentum", options.momentum, 0.0f, 1.0f);
  for (size_t i = 0; i < this->parameters().size(); ++i) {
    const Shape& shape = this->parameters()[i].shape();
    State& state = state_of_.emplace_back();
    state.square = add_state(i, "square", shape, 0.0f);
    if (options.centered) state.mean = add_state(i, "mean", shape);
    if (options.momentum > 0.0f) state.velocity = add_state(i, "velocity", shape);
  }
}

void RmsProp::update(size_t i, Tensor& parameter, const Tensor& grad) {
  State& state = state_of_[i];
  float* const w = parameter.mutable_data();
  float* const square = state.square.mutable_data();
  float* const mean = state.mean.defined() ? state.mean.mutable_data() : nullptr;
  float* const velocity = state.velocity.defined() ? state.velocity.mutable_data() : nullptr;
  const auto part =
      [o = options_, rate = learning_rate(), gradient = grad.floats(), w, square, mean, velocity](
          int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const float g = gradient[k] + o.weight_decay * w[k];
          square[k] = o.alpha * square[k] + (1.0f - o.alpha) * (g * g);
          float size = square[k];
          if (mean != nullptr) {
            mean[k] = o.alpha * mean[k] + (1.0f - o.alpha) * g;
            size = std::max(size - mean[k] * mean[k], 0.0f);
          }
          float step = g / (std::sqrt(size) + o.epsilon);
          if (velocity != nullptr) step = velocity[k] = o.momentum * velocity[k] + step;
          w[k] -= rate * step;
        }
      };
  update_later(parameter.elements(), part);
}

}  // namespace quantrain
