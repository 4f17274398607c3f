#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = x where x > 0, else slope * x.
/// Shapes: x [..., C], slope [C], or [1] for all channels  ->  y like x. If x holds activation
/// codes, y is an integer lookup with a table for each slope; the FakeQuantize that follows sets
/// the parameters of y.   docs/quantization.md (18)
/// Gradient: grad_x = grad_y where x > 0, else slope * grad_y; grad_slope = sum of grad_y * x over
/// the elements where x <= 0.
/// Throws: ShapeError if slope is neither [C] nor [1], or has no elements.
/// Source: He et al. 2015, section 2.1; ONNX PRelu.
Tensor prelu(const Tensor& x, const Tensor& slope);

}  // namespace quantrain
