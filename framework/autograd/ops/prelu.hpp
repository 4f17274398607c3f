#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = x where x > 0, else slope * x.
/// Shapes: x [..., C], slope [C], or [1] for all channels  ->  y like x. If x holds activation
/// codes, y is an integer lookup with a table for each slope; the FakeQuantize that follows sets
/// the parameters of y.   docs/quantization.md (18)
/// Gradient: grad_x = grad_y, times slope where x <= 0; grad_slope = sum of grad_y * x there.
/// Throws: ShapeError if slope is neither [C] nor [1].
/// Source: He et al. 2015, section 2.1; ONNX PRelu.
Tensor prelu(const Tensor& x, const Tensor& slope);

}  // namespace quantrain
