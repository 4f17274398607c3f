#include "framework/optim/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

// cos(pi * x) for 0 <= x <= 1, from its series around 0, because cos() differs between machines.
double cos_pi(double x) {
  if (x > 0.5) return -cos_pi(1.0 - x);
  const double square = 9.869604401089358 * x * x;
  double sum = 0.0;
  for (int k = 24; k >= 2; k -= 2) sum = (1.0 - sum) * square / (k * (k - 1));
  return 1.0 - sum;
}

void check_positive(const char* where, const char* what, float value) {
  if (!(value > 0.0f && std::isfinite(value))) {
    throw DataError(where, what, " is ", value, ", expected a finite number above 0");
  }
}

double warm_up_factor(int64_t step, int64_t warm_up) {
  return step < warm_up ? static_cast<double>(step + 1) / static_cast<double>(warm_up) : 1.0;
}

}  // namespace

Schedule step_schedule(float learning_rate, const StepOptions& options) {
  check_positive("step_schedule", "learning rate", learning_rate);
  check_positive("step_schedule", "factor", options.factor);
  if (options.every < 1)
    throw DataError("step_schedule", "`every` is ", options.every, ", expected at least 1");
  if (options.warm_up < 0)
    throw DataError("step_schedule", "`warm_up` is ", options.warm_up, ", expected at least 0");
  return [=](int64_t step) {
    const DefaultRounding rounding;
    double rate = learning_rate * warm_up_factor(step, options.warm_up);
    for (int64_t i = step / options.every;
         i > 0 && rate > 0.0 && std::isfinite(rate) && options.factor != 1.0f;
         --i)
      rate *= options.factor;
    return computed(static_cast<float>(rate));
  };
}

Schedule cosine_schedule(float learning_rate, const CosineOptions& options) {
  check_positive("cosine_schedule", "learning rate", learning_rate);
  if (!(options.minimum >= 0.0f && options.minimum <= learning_rate)) {
    throw DataError(
        "cosine_schedule", "minimum is ", options.minimum, ", expected 0 to ", learning_rate);
  }
  if (options.warm_up < 0 || options.warm_up >= options.steps) {
    throw DataError("cosine_schedule",
                    "`warm_up` is ",
                    options.warm_up,
                    " of ",
                    options.steps,
                    " steps, expected 0 or more, and fewer than all");
  }
  return [=](int64_t step) {
    const DefaultRounding rounding;
    if (step < options.warm_up)
      return computed(static_cast<float>(learning_rate * warm_up_factor(step, options.warm_up)));
    const auto done = static_cast<double>(std::min(step, options.steps) - options.warm_up);
    const double t = done / static_cast<double>(options.steps - options.warm_up);
    const double rate =
        options.minimum + (double{learning_rate} - options.minimum) * (1.0 + cos_pi(t)) / 2.0;
    return computed(static_cast<float>(rate));
  };
}

}  // namespace quantrain
