#pragma once

#include <cstdint>

#include "framework/kernels/params.hpp"

// Optimizer steps, split into blocks over threads.
namespace quantrain::kernels {

/// Each function does one step. params.hpp has the formulas.
void sgd_f32(int64_t n, const SgdStep& step, const float* grad, float* velocity, float* w);
void adam_f32(int64_t n, const AdamStep& step, const float* grad, float* m, float* v, float* w);

}  // namespace quantrain::kernels
