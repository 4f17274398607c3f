#include "layers/onnx/export_onnx.hpp"

#include <algorithm>
#include <set>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/version.hpp"
#include "framework/io/metadata.hpp"
#include "layers/onnx/exporter.hpp"
#include "layers/onnx/writer.hpp"
#include "layers/record_graph.hpp"

namespace quantrain {
namespace onnx {

Shape NodeExport::sample_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() < 1 || shape[0] != 1) throw NoForm{"it mixes the samples of a batch"};
  return Shape(std::span<const int64_t>(shape.begin() + 1, shape.end()));
}

std::string NodeExport::x(const Form& form, size_t i) const {
  if (!is_data(i)) throw NoForm{"input " + std::to_string(i) + " is a constant"};
  return values.get(ids[i], form);
}

std::vector<float> NodeExport::floats(size_t i) const {
  if (is_data(i)) throw NoForm{"input " + std::to_string(i) + " is not a constant"};
  const Tensor& tensor = node.inputs[i];
  const Floats values_of = tensor.floats();
  const float* const first = values_of;
  return {first, first + tensor.elements()};
}

std::string NodeExport::constant(size_t i,
                                 const std::vector<int64_t>& dims,
                                 const std::vector<float>& floats_of) {
  const std::string& name = node.inputs[i].name();
  if (name.empty()) return graph.constant<float>(dims, floats_of);
  return graph.named_constant<float>(name, dims, floats_of);
}

const ExporterTable& exporters() {
  static const ExporterTable table = [] {
    ExporterTable all;
    add_layer_exporters(all);
    add_move_exporters(all);
    add_function_exporters(all);
    return all;
  }();
  return table;
}

namespace {

struct Names {
  std::vector<std::string> inputs{}, outputs{};
};

/// A batch of one sample of floats.
Tensor one_sample(const Tensor& example) {
  const Shape& shape = example.shape();
  std::vector<int64_t> extents(shape.begin(), shape.end());
  extents[0] = 1;
  Tensor x = Tensor::empty(Shape(extents));
  const Floats values = example.floats();
  const float* const first = values;
  std::copy(first, first + x.elements(), x.mutable_data());
  return x;
}

class GraphExport {
 public:
  GraphExport(const quantrain::Graph& recorded,
              std::vector<Tensor> inputs,
              const OnnxFloatOptions& options)
      : recorded_(recorded),
        inputs_(std::move(inputs)),
        options_(options),
        values_(inputs_.size() + recorded.nodes().size(), graph_),
        is_data_(recorded.nodes().size()) {
    for (const Tensor& input : inputs_) {
      const std::vector<bool> dependents = recorded.dependents(input);
      for (size_t i = 0; i < dependents.size(); ++i) is_data_[i] = is_data_[i] || dependents[i];
    }
  }

  onnx::Graph run(const Names& names) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Form form = end_form(NodeExport::sample_of(inputs_[i]), options_.layout);
      const std::string name = graph_.take_name(names.inputs[i]);
      graph_.input(name, ElementType::kFloat, form.dims);
      values_.set(static_cast<int>(i), form, name);
    }
    for (const GraphNode& node : recorded_.nodes()) {
      if (is_data_[static_cast<size_t>(node.index)]) add(node);
    }
    refuse();
    for (size_t i = 0; i < recorded_.outputs().size(); ++i) {
      const Tensor& output = recorded_.outputs()[i];
      const int id = id_of(output, recorded_.producer(output));
      if (id < 0) throw ExportError("onnx", "output ", i, " does not depend on the input");
      const Shape sample = NodeExport::sample_of(output);
      Form form = end_form(sample, options_.layout);
      // Other values of this rank are no signals.
      if (sample.rank() == 2 && !values_.first_form(id).channels_first) form = form_of(sample);
      const std::string name = graph_.take_name(names.outputs[i]);
      graph_.set_scope(name);
      graph_.node("Identity", {values_.get(id, form)}, {}, name);
      graph_.output(name, ElementType::kFloat, form.dims);
    }
    return graph_.take();
  }

 private:
  /// -1 for a constant.
  int id_of(const Tensor& tensor, int producer) const {
    if (producer != GraphNode::kLeaf) {
      const bool is_data = is_data_[static_cast<size_t>(producer)];
      return is_data ? static_cast<int>(inputs_.size()) + producer : -1;
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].same_as(tensor)) return static_cast<int>(i);
    }
    return -1;
  }

  void add(const GraphNode& node) {
    const std::string layer = node.scope().empty() ? std::string(node.type()) : node.scope();
    const int y = static_cast<int>(inputs_.size()) + node.index;
    try {
      const auto exporter = exporters().find(node.type());
      if (exporter == exporters().end()) throw NoForm{};
      NodeExport out{node, node.node->attributes(), graph_, values_, {}, y};
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Tensor& input = node.inputs[i];
        out.ids.push_back(input.defined() ? id_of(input, node.producers[i]) : -1);
        if (out.ids.back() >= 0 && refused_.contains(out.ids.back())) {
          refused_.insert(y);  // said once, where it begins
          return;
        }
      }
      graph_.set_scope(layer);
      exporter->second(out);
    } catch (const NoForm& why) {
      refused_.insert(y);
      std::string what(node.type());
      if (!why.reason.empty()) what += " (" + why.reason + ")";
      reasons_[what].push_back(layer);
    }
  }

  /// Throws: ExportError that lists what has no form.
  void refuse() const {
    if (reasons_.empty()) return;
    std::string text;
    for (const auto& [what, layers] : reasons_) {
      text += (text.empty() ? "" : "; ") + what + " in ";
      for (size_t i = 0; i < layers.size(); ++i) text += (i > 0 ? ", " : "") + layers[i];
    }
    throw ExportError("onnx",
                      "these operations have no form in ONNX: ",
                      text,
                      reasons_.contains("fake_quantize")
                          ? ". The network is prepared for quantization: export the program that "
                            "convert() gives"
                          : "");
  }

  const quantrain::Graph& recorded_;
  std::vector<Tensor> inputs_;
  const OnnxFloatOptions& options_;
  GraphBuilder graph_;
  HeldValues values_;
  std::vector<bool> is_data_;
  std::set<int> refused_;
  std::map<std::string, std::vector<std::string>> reasons_;
};

Model model_of(Module& net,
               const std::vector<Tensor>& examples,
               Names names,
               const OnnxFloatOptions& options) {
  check_examples("onnx", examples);
  std::vector<Tensor> inputs;
  for (const Tensor& example : examples) inputs.push_back(one_sample(example));
  const quantrain::Graph recorded = record_graph(net, inputs);
  const auto numbered = [](std::vector<std::string>& all, const char* what, size_t count) {
    if (all.empty())
      for (size_t i = 0; i < count; ++i) all.push_back(end_name(what, i, count));
  };
  numbered(names.inputs, "input", inputs.size());
  numbered(names.outputs, "output", recorded.outputs().size());
  Model model;
  model.ir_version = 7;
  model.producer = "quantrain";
  model.producer_version = version();
  model.operator_sets = {{"", 13}};
  model.graph = GraphExport(recorded, std::move(inputs), options).run(names);
  model.graph.name = "quantrain";
  return model;
}

}  // namespace
}  // namespace onnx

onnx::Model onnx_model(Module& net,
                       const std::vector<Tensor>& examples,
                       const OnnxFloatOptions& options) {
  return onnx::model_of(net, examples, {}, options);
}

onnx::Model onnx_model(Network& net, const OnnxFloatOptions& options) {
  onnx::Names names{.outputs = net.outputs()};
  for (const NetworkInput& input : net.inputs()) names.inputs.push_back(input.name);
  onnx::Model model = onnx::model_of(net, net.example(), std::move(names), options);
  for (const auto& [key, text] : net.metadata()) model.metadata.emplace_back(key, text);
  if (!net.classes().empty() && !net.metadata().contains("classes"))
    model.metadata.emplace_back("classes", metadata_text(net.classes()));
  return model;
}

void export_onnx(Module& net,
                 const std::vector<Tensor>& examples,
                 const std::string& path,
                 const OnnxFloatOptions& options) {
  check_writable(path);
  onnx::write_model(path, onnx_model(net, examples, options));
}

void export_onnx(Network& net, const std::string& path, const OnnxFloatOptions& options) {
  check_writable(path);
  onnx::write_model(path, onnx_model(net, options));
}

}  // namespace quantrain
