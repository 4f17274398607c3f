#include "framework/optim/clip.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

// Sums in double, so that no square overflows. The partial sums in `lanes` allow the compiler to
// vectorize the loop. They are added in a fixed order.
double sum_of_squares(int64_t n, const float* x) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (; i < n; ++i) lanes[i % kLanes] += static_cast<double>(x[i]) * x[i];
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double sum_of_squares(const Tensor& tensor) {
  const int64_t n = tensor.elements();
  const Floats x = tensor.floats();
  std::vector<double> blocks(static_cast<size_t>((n + kernels::kGrain - 1) / kernels::kGrain));
  parallel_for(n, kernels::kGrain, [&](int64_t begin, int64_t end) {
    blocks[static_cast<size_t>(begin / kernels::kGrain)] =
        sum_of_squares(end - begin, x.data() + begin);
  });
  double sum = 0.0;
  for (const double block : blocks) sum += block;
  return sum;
}

void check_limit(const char* where, const char* what, float limit) {
  if (!(limit > 0.0f)) throw DataError(where, what, " is ", limit, ", expected more than 0");
}

/// Sets the gradients that are defined. Allocates nothing, so it sets all of them.
void set_grads(std::span<const Tensor> parameters, const std::vector<Tensor>& grads) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor parameter = parameters[i];
    if (grads[i].defined()) parameter.set_grad(grads[i]);
  }
}

}  // namespace

float clip_grad_norm(std::span<const Tensor> parameters, float max_norm) {
  const DefaultRounding rounding;
  check_limit("clip_grad_norm", "max_norm", max_norm);
  double sum = 0.0;
  for (const Tensor& parameter : parameters) {
    if (const Tensor grad = parameter.grad(); grad.defined()) sum += sum_of_squares(grad);
  }
  const float norm = computed(static_cast<float>(std::sqrt(sum)));
  if (!std::isfinite(norm))
    throw DataError("clip_grad_norm",
                    "the norm of the gradients is ",
                    norm,
                    ", so nothing was clipped: the learning rate may be too large, or the data may "
                    "contain NaN or infinity");
  if (norm <= max_norm) return norm;
  const float scale = max_norm / norm;
  std::vector<Tensor> scaled(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor grad = parameters[i].grad();
    if (!grad.defined()) continue;
    scaled[i] = Tensor::empty(grad.shape());  // other tensors may share the gradient's memory
    const Floats grad_floats = grad.floats();
    kernels::affine_f32(grad.elements(), grad_floats, scale, 0.0f, scaled[i].mutable_data());
  }
  set_grads(parameters, scaled);
  return norm;
}

void clip_grad_value(std::span<const Tensor> parameters, float limit) {
  check_limit("clip_grad_value", "limit", limit);
  std::vector<Tensor> clipped(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor grad = parameters[i].grad();
    if (!grad.defined()) continue;
    clipped[i] = Tensor::empty(grad.shape());
    const Floats x = grad.floats();
    float* const y = clipped[i].mutable_data();
    for (int64_t k = 0; k < grad.elements(); ++k) {
      if (std::isnan(x[k])) {
        throw DataError("clip_grad_value", "the gradient of parameter ", i, " is NaN at ", k);
      }
      y[k] = std::clamp(x[k], -limit, limit);
    }
  }
  set_grads(parameters, clipped);
}

}  // namespace quantrain
