#include <cmath>

#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {

void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w) {
  for (int64_t i = 0; i < n; ++i) {
    const float g = step.grad_scale * grad[i] + step.weight_decay * w[i];
    float v = g;
    if (velocity != nullptr) {
      if (!step.first_step) v = step.momentum * velocity[i] + g;
      velocity[i] = v;
    }
    w[i] -= step.learning_rate * (step.nesterov ? g + step.momentum * v : v);
  }
}

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// w -= learning_rate * (m / correction1) / (sqrt(v / correction2) + epsilon).   Kingma and Ba 2015,
// algorithm 1
void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w) {
  for (int64_t i = 0; i < n; ++i) {
    float g = step.grad_scale * grad[i];
    if (step.decoupled) {
      w[i] -= step.learning_rate * step.weight_decay * w[i];
    } else {
      g += step.weight_decay * w[i];
    }
    m[i] = step.beta1 * m[i] + (1.0f - step.beta1) * g;
    v[i] = step.beta2 * v[i] + (1.0f - step.beta2) * g * g;
    w[i] -= step.learning_rate * (m[i] / step.correction1) /
            (std::sqrt(v[i] / step.correction2) + step.epsilon);
  }
}

}  // namespace quantrain::kernels::reference
