#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "framework/core/window.hpp"

namespace quantrain {

/// y is x padded with `value`: along each axis k, before[k] elements before x and after[k] after x.
/// Shapes: x [d_0, d_1, ...] -> y [before[0] + d_0 + after[0], ...].
/// Codes with per-tensor parameters stay codes with the same parameters if the batch axis is not
/// padded and `value` is the real value of a code (0 always is); otherwise y holds floats.
/// docs/quantization.md (23)
/// Gradient: grad_x is the part of grad_y at the elements of x.
/// If nothing is padded, y shares its memory with x.
/// Throws: ShapeError if before or after does not have one number for each axis, a number is
/// negative, or an axis of y would be too long.
/// Source: ONNX Pad, mode constant.
Tensor pad(const Tensor& x,
           const std::vector<int64_t>& before,
           const std::vector<int64_t>& after,
           float value = 0.0f);

/// The same for images: padding.h rows above and below, padding.w columns left and right.
/// Shapes: x [N, H, W, C] -> y [N, H + 2 padding.h, W + 2 padding.w, C].
/// Throws: ShapeError if x is not [N, H, W, C], the padding is negative, or an axis of y would be
/// too long.
Tensor pad2d(const Tensor& x, Size2d padding, float value = 0.0f);

}  // namespace quantrain
