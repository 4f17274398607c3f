#pragma once

#include <span>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// Scales all gradients by max_norm / norm if the Euclidean norm of all of them together exceeds
/// max_norm. Parameters without a gradient count as 0. Returns the norm before scaling.
/// Throws: DataError if max_norm is not positive, or the norm is NaN or infinite. If it throws, the
/// gradients are unchanged.
/// Source: Pascanu et al. 2013, algorithm 1
float clip_grad_norm(std::span<const Tensor> parameters, float max_norm);

/// Clamps every element of every gradient to [-limit, limit].
/// Throws: DataError if limit is not positive, or an element is NaN. If it throws, the gradients
/// are unchanged.
void clip_grad_value(std::span<const Tensor> parameters, float limit);

}  // namespace quantrain
