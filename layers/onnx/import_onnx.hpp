#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layers/network/network.hpp"

namespace quantrain {

namespace onnx {
struct Model;
}

struct OnnxOptions {
  /// Shapes of inputs whose extents the file leaves open, by their names, in the file's order of
  /// axes: {{"input", {1, 3, 224, 224}}}. The first is the number of samples; any number will do.
  std::map<std::string, std::vector<int64_t>> shapes{};
  /// Values of the file to be the network's outputs, instead of the file's own: for networks with a
  /// part at the end that has no layer here, such as the choice of boxes or labels. Only what they
  /// need is read.
  std::vector<std::string> outputs{};
  /// How many elements the constants may have that the file describes instead of holding them, as
  /// ConstantOfShape and Range do. It limits what a file that nobody trusts can take.
  int64_t described_constants = int64_t{1} << 20;
};

/// Reads a network of floats from an .onnx file (operator sets 7 to 25) as PyTorch, tf2onnx and
/// others write it. The result computes what the file does, in evaluation mode, and trains, is
/// prepared and converts as any network.
/// Images are [N, H, W, C] here: an input that is [N, C, H, W] in the file takes [N, H, W, C], and
/// so do signals, [N, L, C], where the network convolves them; outputs likewise. Weights are moved
/// to our layout, those of a layer after a flattened image, too, and transposes between layouts
/// vanish. Network::inputs() has the shapes. Layers are named after their weights ("features.0" has
/// "features.0.weight"), so PyTorch's names of parameters stay. Shape arithmetic is computed, and
/// functions that are written as several operators, such as GELU, become one layer.
/// Initializers become parameters, one for each use; single numbers in formulas, and constants that
/// stand in for them, do not.
/// The file is untrusted: see SECURITY.md.
/// Throws: DataError naming the path and the fault if the file is not valid; DataError that lists
/// each operator that has no layer here, with the nodes that use it; GraphError like Network().
/// Source: github.com/onnx/onnx, docs/Operators.md.
Network import_onnx(const std::string& path, const OnnxOptions& options = {});
/// The same for a file that onnx::read_model() has read.
Network import_onnx(onnx::Model model, const OnnxOptions& options = {});

}  // namespace quantrain
