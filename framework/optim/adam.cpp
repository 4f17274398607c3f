#include "framework/optim/adam.hpp"

#include <algorithm>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/kernels/float/optimizer.hpp"

namespace quantrain {
namespace {

// 1 - beta^t, computed by multiplications only, because pow() differs between machines.
float correction(float beta, int64_t t) {
  double power = 1.0;
  double square = beta;
  for (; t > 0; t /= 2) {
    if (t % 2 == 1) power *= square;
    square *= square;
  }
  return static_cast<float>(1.0 - power);
}

}  // namespace

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Adam("adam", std::move(parameters), options, false) {}

Adam::Adam(const char* name,
           std::vector<Tensor> parameters,
           const AdamOptions& options,
           bool decoupled)
    : Optimizer(name,
                std::move(parameters),
                options.learning_rate,
                options.allow_nonfinite,
                kLargestWithFiniteSquare),
      options_(options),
      decoupled_(decoupled) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  check_option("beta1", options.beta1, 0.0f, 1.0f);
  check_option("beta2", options.beta2, 0.0f, 1.0f);
  check_option("epsilon", options.epsilon, std::numeric_limits<float>::min(), kInfinity);
  check_option("weight decay", options.weight_decay, 0.0f, kInfinity);
  for (size_t i = 0; i < this->parameters().size(); ++i) {
    const Shape& shape = this->parameters()[i].shape();
    moments_.push_back(
        {add_state(i, "m", shape), add_state(i, "v", shape, 0.0f), add_count(i, "steps")});
  }
}

void Adam::update(size_t i, Tensor& parameter, const Tensor& grad) {
  Moments& moments = moments_[i];
  const int64_t steps = std::min(moments.steps.item() + 1, kMostCount);
  const kernels::AdamStep step{.learning_rate = learning_rate(),
                               .beta1 = options_.beta1,
                               .beta2 = options_.beta2,
                               .epsilon = options_.epsilon,
                               .weight_decay = options_.weight_decay,
                               .grad_scale = 1.0f,
                               .correction1 = correction(options_.beta1, steps),
                               .correction2 = correction(options_.beta2, steps),
                               .decoupled = decoupled_};
  update_later(parameter.elements(),
               [step,
                steps,
                count = &moments.steps,
                g = grad.floats(),
                m = moments.m.mutable_data(),
                v = moments.v.mutable_data(),
                w = parameter.mutable_data()](int64_t begin, int64_t end) {
                 if (begin == 0) count->fill(steps);
                 kernels::adam_f32(end - begin, step, g + begin, m + begin, v + begin, w + begin);
               });
}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : Adam("adamw",
           std::move(parameters),
           {.learning_rate = options.learning_rate,
            .beta1 = options.beta1,
            .beta2 = options.beta2,
            .epsilon = options.epsilon,
            .weight_decay = options.weight_decay,
            .allow_nonfinite = options.allow_nonfinite},
           true) {}

}  // namespace quantrain
