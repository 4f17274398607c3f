#include "framework/optim/adam.hpp"

#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/kernels/float/optimizer.hpp"

namespace quantrain {
namespace {

// The number of steps is stored as a float, like all saved state. The count stops at 2^24, because
// adding 1 would be rounded away. By then, the bias corrections 1 - beta^t are 1, unless a beta is
// within about 10^-6 of 1.
constexpr float kMostSteps = 0x1p24f;

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
    moments_.push_back({add_state(i, "m", shape),
                        add_state(i, "v", shape, 0.0f),
                        add_state(i, "steps", {1}, 0.0f)});
  }
}

void Adam::check_state(size_t i) const {
  const float steps = moments_[i].steps.item();
  if (!(steps <= kMostSteps && steps == std::floor(steps))) {
    throw DataError(name(),
                    "state \"",
                    i,
                    ".steps\" holds ",
                    steps,
                    ", expected a whole number from 0 to 2^24");
  }
}

void Adam::update(size_t i, Tensor& parameter, const Tensor& grad) {
  Moments& moments = moments_[i];
  const float steps = *moments.steps.mutable_data() += 1.0f;
  const kernels::AdamStep step{
      .learning_rate = learning_rate(),
      .beta1 = options_.beta1,
      .beta2 = options_.beta2,
      .epsilon = options_.epsilon,
      .weight_decay = options_.weight_decay,
      .grad_scale = 1.0f,
      .correction1 = correction(options_.beta1, static_cast<int64_t>(steps)),
      .correction2 = correction(options_.beta2, static_cast<int64_t>(steps)),
      .decoupled = decoupled_};
  const Floats grad_floats = grad.floats();
  kernels::adam_f32(parameter.elements(),
                    step,
                    grad_floats,
                    moments.m.mutable_data(),
                    moments.v.mutable_data(),
                    parameter.mutable_data());
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
