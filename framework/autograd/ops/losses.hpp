#pragma once

#include "framework/autograd/tensor.hpp"

// Losses that average a function of x and target over the elements: x, target [...]  ->  y []. Each
// throws ShapeError if the shapes differ or there are no elements. mse_loss.hpp declares another
// such loss.
namespace quantrain {

/// y = mean of |x - target|.
/// Gradient: grad_x = grad_y * sign(x - target) / number of elements, 0 where x = target;
/// grad_target = -grad_x.
/// Source: PyTorch's l1_loss.
Tensor l1_loss(const Tensor& x, const Tensor& target);

/// y = mean of d * d / 2 where |d| <= delta, else delta * (|d| - delta / 2), d = x - target.
/// Gradient: grad_x = grad_y * min(max(d, -delta), delta) / number of elements;
/// grad_target = -grad_x.
/// Throws: as above; DataError unless delta is positive and finite.
/// Source: Huber 1964; PyTorch's huber_loss.
Tensor huber_loss(const Tensor& x, const Tensor& target, float delta = 1.0f);

/// y = mean of -target * log(p) - (1 - target) * log(1 - p), p = sigmoid(x). For independent yes-no
/// answers; targets are probabilities. Computed as max(x, 0) - x * target + log(1 + exp(-|x|)), so
/// that nothing overflows.
/// Gradient: grad_x = grad_y * (p - target) / number of elements;
/// grad_target = -grad_y * x / number of elements.
/// Source: PyTorch's binary_cross_entropy_with_logits.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target);

}  // namespace quantrain
