#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// Takes the elements begin, begin + step, ... and stops before end, as in Python. A negative begin
/// or end counts from the end of the axis. Positions outside the axis are clamped. {.step = -1}
/// reverses the axis.
struct SliceOptions {
  /// Default: the first element of the axis or, if the step is negative, the last.
  std::optional<int64_t> begin = std::nullopt;
  /// Exclusive. Default: just beyond the last element in the direction of the step.
  std::optional<int64_t> end = std::nullopt;
  int64_t step = 1;  ///< not 0
};

/// y[..., i, ...] = x[..., begin + i * step, ...] along `axis`; a negative axis counts from the
/// end.
/// Shapes: x [..., D, ...]  ->  y [..., ceil((end - begin) / step), ...]; the extent may be 0.
/// Codes with per-tensor parameters stay codes with the same parameters, unless `axis` is the
/// batch axis.
/// docs/quantization.md (23)
/// Gradient: grad_y where an element was taken, else 0.
/// If the slice takes every element, y shares its memory with x.
/// Throws: ShapeError if x has no such axis, the step is 0, or the slice changes an axis of 2^31
/// elements or more.
/// Source: ONNX Slice.
Tensor slice(const Tensor& x, int axis, const SliceOptions& options);

/// Throws: ShapeError naming `where` if the step is 0.
void check_slice(std::string_view where, const SliceOptions& options);

}  // namespace quantrain
