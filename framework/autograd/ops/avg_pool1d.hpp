#pragma once

#include "framework/autograd/ops/pool1d.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[n, i, c] = the mean of x[n, l, c] over the part of a window inside the signal.
/// Shapes: x [N, L, C]  ->  y [N, OL, C], OL = (L + 2 padding - kernel) / stride + 1. Codes give
/// an integer mean; the FakeQuantize after it sets its output's parameters.
/// docs/quantization.md (10)
/// Gradient: grad_y over the number of elements inside, to each of them.
/// Throws: ShapeError if x has not three axes, the kernel exceeds the padded signal, padding is not
/// below the kernel, or a number is senseless; QuantError if a sum of codes could leave 32 bits.
/// Source: ONNX AveragePool of one axis with count_include_pad = 0, channels last.
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options);

/// The mean of each channel: avg_pool1d with the whole signal as kernel.
/// Shapes: x [N, L, C]  ->  y [N, 1, C].
/// Throws: ShapeError if x has not three axes, or a signal has no elements; as above.
/// Source: ONNX GlobalAveragePool of one axis, channels last.
Tensor global_avg_pool1d(const Tensor& x);

}  // namespace quantrain
