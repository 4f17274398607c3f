#pragma once

#include "framework/autograd/ops/pool1d.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y[n, i, c] = the mean of x[n, l, c] over the part of a window that lies inside the signal.
/// With count_include_pad, padding counts as zeros.
/// Shapes: x [N, L, C]  ->  y [N, OL, C], OL = (L + 2 padding - kernel) / stride + 1; with
/// ceil_mode, see pool_end(). If x holds activation codes, y is an integer mean; the FakeQuantize
/// that follows sets the parameters of y.   docs/quantization.md (10)
/// Gradient: the elements of a window that lie inside the signal share grad_y equally.
/// Throws: ShapeError if x does not have three axes, the kernel exceeds the padded signal, padding
/// is not below the kernel, or an option is out of range; QuantError if a sum of codes could
/// exceed 32 bits.
/// Source: ONNX AveragePool over one axis, channels last; options as in PyTorch's AvgPool1d, whose
/// default is count_include_pad=True.
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options);

/// The mean of each channel: avg_pool1d with a kernel that covers the whole signal.
/// Shapes: x [N, L, C]  ->  y [N, 1, C].
/// Throws: ShapeError if x does not have three axes, or L is 0; otherwise like avg_pool1d().
/// Source: ONNX GlobalAveragePool over one axis, channels last.
Tensor global_avg_pool1d(const Tensor& x);

}  // namespace quantrain
