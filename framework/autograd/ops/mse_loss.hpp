#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = mean over all elements of (x - target)^2.
/// Shapes: x [...], target like x -> y [].
/// Gradient: grad_x = grad_y * 2 * (x - target) / number of elements; grad_target = -grad_x.
/// Throws: ShapeError if the shapes differ or there are no elements.
Tensor mse_loss(const Tensor& x, const Tensor& target);

}  // namespace quantrain
