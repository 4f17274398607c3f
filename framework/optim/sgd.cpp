#include "framework/optim/sgd.hpp"

#include <limits>

#include "framework/core/error.hpp"
#include "framework/kernels/float/optimizer.hpp"

namespace quantrain {

Sgd::Sgd(std::vector<Tensor> parameters, const SgdOptions& options)
    : Optimizer("sgd", std::move(parameters), options.learning_rate, options.allow_nonfinite),
      options_(options) {
  check_option("momentum", options.momentum, 0.0f, 1.0f);
  check_option("weight decay", options.weight_decay, 0.0f, std::numeric_limits<float>::infinity());
  if (options.nesterov && options.momentum == 0.0f)
    throw DataError("sgd", "nesterov needs a momentum");
  if (options.momentum == 0.0f) return;
  for (size_t i = 0; i < this->parameters().size(); ++i) {
    velocity_.push_back(add_state(i, "velocity", this->parameters()[i].shape()));
  }
}

void Sgd::update(size_t i, Tensor& parameter, const Tensor& grad) {
  const kernels::SgdStep step{
      .learning_rate = learning_rate(),
      .momentum = options_.momentum,
      .weight_decay = options_.weight_decay,
      .grad_scale = 1.0f,
      .nesterov = options_.nesterov,
      .first_step = false};  // the velocity starts at 0, so the first step needs no special case
  float* const velocity = velocity_.empty() ? nullptr : velocity_[i].mutable_data();
  update_later(parameter.elements(),
               [step, g = grad.floats(), velocity, w = parameter.mutable_data()](int64_t begin,
                                                                                 int64_t end) {
                 float* const v = velocity == nullptr ? nullptr : velocity + begin;
                 kernels::sgd_f32(end - begin, step, g + begin, v, w + begin);
               });
}

}  // namespace quantrain
