#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/onnx/importer.hpp"

// Shared by convolutions and pools.
namespace quantrain::onnx {

/// How an operator's window moves over each spatial axis.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<int64_t> before, after;  ///< padding
  std::vector<int64_t> input;          ///< extents
  bool ceil_mode = false;

  size_t axes() const { return kernel.size(); }
  /// Number of windows along an axis. With ceil_mode, the last one starts in the input or in the
  /// padding before it.
  int64_t count(size_t axis) const;
  bool is_symmetric() const { return before == after; }
};

/// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. kernel: from the weights,
/// or empty. x is a signal [N, C, L] or an image [N, C, H, W].
/// Throws: Refusal if x has other axes, or a number is out of range.
Windows windows_of(const NodeImport& n, const Value& x, std::vector<int64_t> kernel);

/// The value [N, spatial ..., C], padded by a layer with windows.before and after, which become 0.
Value padded(NodeImport& n, const Value& x, Windows& windows);

/// A constant that varies along one axis of x only: its value for each index of that axis, in the
/// file's order. Nothing if it varies along others, or would broadcast x.
std::optional<std::vector<float>> along_axis(const Importer& importer,
                                             const Constant& constant,
                                             const Value& x,
                                             int axis);

/// values[permutation[i]], or the values if the permutation is empty.
std::vector<float> permuted(const std::vector<float>& values,
                            const std::vector<int64_t>& permutation);

}  // namespace quantrain::onnx
