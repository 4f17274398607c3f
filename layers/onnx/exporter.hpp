#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autograd/graph.hpp"
#include "layers/onnx/forms.hpp"

namespace quantrain::onnx {

/// Thrown by an exporter of an operation: why it has no form.
struct NoForm {
  std::string reason;
};

/// One recorded operation while it is exported.
struct NodeExport {
  const GraphNode& node;
  Attributes attributes;
  GraphBuilder& graph;
  HeldValues& values;
  std::vector<int> ids;  ///< of the inputs in values; -1: a constant, or absent
  int y;                 ///< of the output

  bool has(size_t i) const { return i < node.inputs.size() && node.inputs[i].defined(); }
  bool is_data(size_t i) const { return has(i) && ids[i] >= 0; }
  /// The shape of one sample. Throws: NoForm if the samples of a batch are no leading axis.
  Shape sample(size_t i = 0) const { return sample_of(node.inputs[i]); }
  Shape y_sample() const { return sample_of(node.output); }
  /// Input i, which must be data, in this form.
  std::string x(const Form& form, size_t i = 0) const;
  std::string x() const { return x(first_form(0), 0); }
  const Form& first_form(size_t i) const& { return values.first_form(ids[i]); }

  /// A constant input's elements. Throws: NoForm if it depends on the network's input.
  std::vector<float> floats(size_t i) const;
  /// A constant input under its own name, with other elements or dims.
  std::string constant(size_t i,
                       const std::vector<int64_t>& dims,
                       const std::vector<float>& floats);
  std::string constant(size_t i, const std::vector<int64_t>& dims) {
    return constant(i, dims, floats(i));
  }

  std::string add(std::string_view op_type,
                  std::vector<std::string> inputs,
                  std::vector<onnx::Attribute> attributes_of_node = {}) {
    return graph.node(op_type, std::move(inputs), std::move(attributes_of_node));
  }
  void give(const Form& form, std::string name) { values.set(y, form, std::move(name)); }

  static Shape sample_of(const Tensor& tensor);
};

using Exporter = std::function<void(NodeExport&)>;
using ExporterTable = std::map<std::string, Exporter, std::less<>>;
/// The forms of operations by the type of their nodes.
const ExporterTable& exporters();
void add_layer_exporters(ExporterTable& table);     // export_layers.cpp
void add_move_exporters(ExporterTable& table);      // export_moves.cpp
void add_function_exporters(ExporterTable& table);  // export_functions.cpp

}  // namespace quantrain::onnx
