#pragma once

#include <cstdint>
#include <functional>

namespace quantrain {

/// Returns the learning rate of a training step; steps count from 0. A schedule is a pure function,
/// so a run can be resumed at any step.
///   optimizer.set_learning_rate(schedule(step));
using Schedule = std::function<float(int64_t step)>;

struct StepOptions {
  int64_t every = 1;    ///< steps between two changes
  float factor = 0.1f;  ///< multiplies the rate at each change
  int64_t warm_up = 0;  ///< steps at the beginning in which the rate rises linearly
};

/// rate = learning_rate * factor^floor(step / every). While step < warm_up, the rate is multiplied
/// by (step + 1) / warm_up.
/// Throws: DataError unless learning_rate and factor are positive and finite, every >= 1 and
/// warm_up >= 0.
Schedule step_schedule(float learning_rate, const StepOptions& options);

struct CosineOptions {
  int64_t steps = 1;     ///< steps of the whole training, including warm_up
  float minimum = 0.0f;  ///< learning rate at step `steps` and later
  int64_t warm_up = 0;   ///< steps at the beginning in which the rate rises linearly
};

/// rate = minimum + (learning_rate - minimum) * (1 + cos(pi * t)) / 2,
/// t = (step - warm_up) / (steps - warm_up), clamped to [0, 1].
/// While step < warm_up, rate = learning_rate * (step + 1) / warm_up.
/// Throws: DataError unless learning_rate is positive and finite, 0 <= minimum <= learning_rate and
/// 0 <= warm_up < steps.
/// Source: Loshchilov and Hutter 2017, equation (5)
Schedule cosine_schedule(float learning_rate, const CosineOptions& options);

}  // namespace quantrain
