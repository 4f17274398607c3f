#pragma once

#include "framework/autograd/tensor.hpp"
#include "framework/core/window.hpp"

namespace quantrain {

/// y[n, i, j, c] = x[n, floor(i / scale.h), floor(j / scale.w), c]: repeats each pixel.
/// Shapes: x [N, H, W, C]  ->  y [N, H scale.h, W scale.w, C]; x [N, L, C] with scale {s, 1}  ->
/// y [N, L s, C]. Codes with per-tensor parameters stay codes with the same parameters.
/// docs/quantization.md (23)
/// Gradient: grad_x is the sum of grad_y over the copies of each pixel.
/// If the scales are 1, y shares its memory with x.
/// Throws: ShapeError if x does not have three or four axes, if x has three axes and scale.w is not
/// 1, if a scale is outside [1, 2^31), or if y would be too long.
/// Source: ONNX Resize (nearest, asymmetric, floor); PyTorch's Upsample.
Tensor upsample_nearest(const Tensor& x, Size2d scale);

/// Throws: ShapeError naming `where` if a scale is below 1 or not below 2^31.
void check_upsample(std::string_view where, Size2d scale);

}  // namespace quantrain
