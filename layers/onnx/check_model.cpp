#include "layers/onnx/check_model.hpp"

#include <string_view>
#include <unordered_set>

#include "framework/core/error.hpp"

namespace quantrain::onnx {

void check_model(const Model& model) {
  if (model.ir_version < kLeastIrVersion || model.ir_version > kMostIrVersion) {
    throw DataError("onnx",
                    model.path,
                    ": has format version (IR) ",
                    model.ir_version,
                    ", expected ",
                    kLeastIrVersion,
                    " to ",
                    kMostIrVersion);
  }
  const int64_t opset = model.opset();
  if (opset < kLeastOpset || opset > kMostOpset) {
    throw DataError("onnx",
                    model.path,
                    ": has operator set ",
                    opset,
                    ", expected ",
                    kLeastOpset,
                    " to ",
                    kMostOpset,
                    ": export it again with a version in this range");
  }
  const Graph& graph = model.graph;
  std::unordered_set<std::string_view> made;
  const auto twice = [&](const char* what, const std::string& name) {
    throw DataError("onnx", model.path, ": ", what, " \"", name, "\" is made twice");
  };
  for (const ValueInfo& input : graph.inputs) {
    if (!made.insert(input.name).second) twice("the input", input.name);
  }
  std::unordered_set<std::string_view> initialized;
  for (const StoredTensor& tensor : graph.initializers) {
    if (!initialized.insert(tensor.name).second) twice("the initializer", tensor.name);
    made.insert(tensor.name);
  }

  std::unordered_set<std::string_view> later;
  for (const Node& node : graph.nodes) {
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      if (made.contains(output) || !later.insert(output).second) twice("the value", output);
    }
  }
  for (const Node& node : graph.nodes) {
    for (const std::string& input : node.inputs) {
      if (input.empty() || made.contains(input)) continue;
      throw DataError(
          "onnx",
          model.path,
          ": ",
          node.label(),
          " reads \"",
          input,
          later.contains(input)
              ? "\", which itself or a later node makes: nodes are in a cycle or out of "
                "order"
              : "\", which no node, input or initializer makes");
    }
    for (const std::string& output : node.outputs) {
      if (!output.empty()) made.insert(output);
    }
  }
  if (graph.outputs.empty()) throw DataError("onnx", model.path, ": has no output");
  for (const ValueInfo& output : graph.outputs) {
    if (!made.contains(output.name))
      throw DataError("onnx", model.path, ": nothing makes the output \"", output.name, '"');
  }
}

}  // namespace quantrain::onnx
