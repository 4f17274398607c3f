#include "quant/import/onnx/import_quantized_onnx.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "layers/activation.hpp"
#include "layers/onnx/check_model.hpp"
#include "layers/onnx/reader.hpp"
#include "layers/onnx/recognize.hpp"
#include "quant/import/onnx/import_quantized_model.hpp"
#include "quant/import/onnx/layer_weights.hpp"
#include "quant/import/onnx/rewriter.hpp"

namespace quantrain::quant {
namespace {

using onnx::FloatGraph;
using onnx::Model;
using onnx::QuantizedParts;

/// Imports the graph of floats. A quantizer becomes a layer that changes nothing.
onnx::Importer imported(const Model& model,
                        const OnnxOptions& options,
                        const FloatGraph& graph,
                        std::map<std::string, QParams>* quantizers) {
  onnx::HandlerTable own;
  own[std::string(onnx::kOwnDomain) + "." + onnx::kQuantizer] = [&graph,
                                                                 quantizers](onnx::NodeImport& n) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const onnx::Value y =
        n.importer.function_of(n.x(), std::make_shared<Clamp>(-kInfinity, kInfinity));
    const auto index = static_cast<size_t>(n.node.get(onnx::kIndex, int64_t{0}));
    if (quantizers != nullptr) (*quantizers)[y.step] = graph.quantizers[index];
    n.give(y);
  };
  onnx::Importer importer(model, options.shapes, options.described_constants, std::move(own));
  importer.run();
  return importer;
}

QuantizedParts import_floats(const FloatGraph& graph, const QuantizedOnnxOptions& all) {
  const OnnxOptions& options = all.onnx;
  onnx::check_model(graph.model);
  Model model = graph.model;
  model.graph = onnx::recognize(model.graph);
  QuantizedParts net;
  onnx::Importer importer = imported(model, options, graph, &net.quantizers);
  if (importer.all_values() > all.most_elements) {
    throw DataError("onnx",
                    model.path,
                    ": the values of a sample have ",
                    importer.all_values(),
                    " elements, more than QuantizedOnnxOptions::most_elements, ",
                    all.most_elements);
  }
  net.parts = std::move(importer.parts());

  Model scaled = model;
  std::map<std::string, const onnx::StoredTensor*> scales;
  for (const onnx::StoredTensor& tensor : graph.scales) scales[tensor.name] = &tensor;
  for (onnx::StoredTensor& tensor : scaled.graph.initializers) {
    if (const auto found = scales.find(tensor.name); found != scales.end()) tensor = *found->second;
  }
  onnx::Importer of_scales = imported(scaled, options, graph, nullptr);
  std::map<std::string, const Module*> layers;
  for (const NetworkStep& step : of_scales.parts().steps) layers[step.name] = step.layer.get();
  const auto origins = onnx::origins_of(graph, model.graph);
  for (const auto& [step, value] : importer.weights()) {
    const auto origin = origins.find(value);
    const auto like = layers.find(step);
    if (origin != origins.end() && like != layers.end())
      net.weights[step] = onnx::layer_weights(*origin->second, *like->second);
  }
  onnx::fold_batch_norms(net);
  for (const NetworkStep& step : net.parts.steps) {
    const auto weights = net.weights.find(step.name);
    if (weights != net.weights.end()) onnx::check_codes(weights->second, *step.layer);
  }
  return net;
}

/// A range whose parameters by (2) are these.
Range range_with(const QParams& params, const std::string& where) {
  const DefaultRounding rounding;
  const double scale = params.scale[0];
  const int32_t zero = params.zero_point[0];
  const auto least = static_cast<float>(0.0 - scale * zero);
  const auto most = static_cast<float>(scale * (255 - zero));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // The larger end is rounded; the other one makes up for it.
  std::vector<Range> candidates{{least, most}};
  for (const float a : {most, std::nextafter(most, kInfinity), std::nextafter(most, -kInfinity)})
    candidates.push_back({static_cast<float>(double{a} - 255.0 * scale), a});
  for (const float a : {least, std::nextafter(least, kInfinity), std::nextafter(least, -kInfinity)})
    candidates.push_back({a, static_cast<float>(double{a} + 255.0 * scale)});
  for (const Range& range : candidates) {
    if (range.min <= 0.0f && range.max >= 0.0f && range.min < range.max &&
        std::isfinite(range.min) && std::isfinite(range.max) &&
        integer::input_params(range, where) == params)
      return range;
  }
  throw QuantError(where, "no range has the parameters ", onnx::text_of(params));
}

/// What is chosen anew, and the report.
class SlotChoice {
 public:
  SlotChoice(onnx::Placed& placed,
             const QuantizedParts& net,
             const QuantizedOnnxOptions& options,
             QuantizedOnnxReport& report)
      : placed_(placed), net_(net), options_(options), report_(report) {}

  void describe_inputs(const std::string& path) {
    for (NetworkInput& input : placed_.parts.inputs) {
      const auto params = placed_.inputs.find(input.name);
      const auto range = options_.ranges.find(input.name);
      if (params != placed_.inputs.end()) {
        input.range = range_with(params->second, input.name);
        row(input.name, QuantizedOnnxRow::kInput, params->second);
      } else if (range != options_.ranges.end()) {
        input.range = range->second;
        row(input.name, QuantizedOnnxRow::kInput, "the range is the caller's");
      } else {
        throw QuantError("onnx",
                         path,
                         ": the file does not quantize the input \"",
                         input.name,
                         "\": give its range in QuantizedOnnxOptions::ranges");
      }
    }
    for (const auto& [name, range] : options_.ranges) {
      const auto is_it = [name = name](const NetworkInput& input) { return input.name == name; };
      if (std::none_of(placed_.parts.inputs.begin(), placed_.parts.inputs.end(), is_it))
        throw DataError("onnx", path, ": a range is given for \"", name, "\", which is no input");
    }
  }

  GivenParams given(const std::vector<Site>& sites, const std::string& path) {
    GivenParams given;
    for (const Site& site : sites) {
      if (site.has_weights) give_weights(site, given);
      give_output(site, given, path);
    }
    return given;
  }

  QConfig config(const std::vector<Site>& sites, const GivenParams& given) const {
    QConfig config = options_.config;
    for (const Site& site : sites) {
      LayerConfig layer = config.of(site.layer->type(), site.path);
      if (const auto found = given.weights.find(site.path); found != given.weights.end()) {
        layer.weight = {.bits = found->second.type.bits,
                        .narrow = found->second.type.narrow,
                        .per_channel = found->second.axis == 0};
      }
      if (const auto found = given.outputs.find(site.last_path); found != given.outputs.end()) {
        layer.activation = {.bits = found->second.type.bits,
                            .is_signed = found->second.type.is_signed};
      }
      config.layers[site.path] = layer;
    }
    return config;
  }

  void refuse_missing(const std::string& path) const {
    if (options_.choose_anew) return;
    TextStream list;
    for (const QuantizedOnnxRow& row : report_.rows) {
      if (!row.is_kept && row.kind != QuantizedOnnxRow::kInput)
        list << "\n  " << row.layer << ": " << row.note;
    }
    if (list.tellp() == 0) return;
    throw QuantError("onnx",
                     path,
                     ": not all of its quantization can be kept; "
                     "QuantizedOnnxOptions::choose_anew chooses this anew:",
                     list.str());
  }

 private:
  void row(const std::string& layer, QuantizedOnnxRow::Kind kind, const QParams& params) {
    report_.rows.push_back({layer, kind, true, params, {}});
  }
  void row(const std::string& layer, QuantizedOnnxRow::Kind kind, std::string note) {
    report_.rows.push_back({layer, kind, false, {}, std::move(note)});
  }

  void give_weights(const Site& site, GivenParams& given) {
    const auto found = net_.weights.find(site.path);
    if (found == net_.weights.end())
      return row(site.path, QuantizedOnnxRow::kWeights, "weights that the file does not quantize");
    if (!found->second.problem.empty())
      return row(site.path, QuantizedOnnxRow::kWeights, found->second.problem);
    given.weights[site.path] = found->second.params;
    row(site.path, QuantizedOnnxRow::kWeights, found->second.params);
  }

  void give_output(const Site& site, GivenParams& given, const std::string& path) {
    const auto own = placed_.values.find(site.path);
    const bool is_fused = site.path != site.last_path;
    if (is_fused && own != placed_.values.end()) {
      // A step that only changes codes, together with the ReLU after it. It does nothing if its
      // input has these parameters, and then the ReLU may have its own.
      const auto last = placed_.values.find(site.last_path);
      if (last == placed_.values.end()) {
        placed_.values[site.last_path] = own->second;
      } else if (!(last->second == own->second) && !reads_same(site.path, own->second)) {
        throw QuantError("onnx",
                         path,
                         ": the results of \"",
                         site.path,
                         "\" and of \"",
                         site.last_path,
                         "\" have parameters of their own, and are one operation here");
      }
    }
    const auto found = placed_.values.find(site.last_path);
    if (found != placed_.values.end()) {
      given.outputs[site.last_path] = found->second;
      return row(site.last_path, QuantizedOnnxRow::kActivation, found->second);
    }
    const bool gives_sums = site.gives_output && site.has_weights && !ends_in_activation(site);
    if (gives_sums) {
      report_.rows.push_back({site.last_path,
                              QuantizedOnnxRow::kSums,
                              true,
                              {},
                              "integer sums: the file does not "
                              "quantize this output"});
    } else if (site.range) {
      report_.rows.push_back({site.last_path,
                              QuantizedOnnxRow::kActivation,
                              true,
                              {},
                              "the range of this operation is known"});
    } else {
      row(site.last_path,
          QuantizedOnnxRow::kActivation,
          "a result that the file does not quantize");
    }
  }

  static bool ends_in_activation(const Site& site) {
    return site.last != site.layer && site.last != site.batch_norm;
  }

  bool reads_same(const std::string& step, const QParams& params) const {
    for (const NetworkStep& entry : placed_.parts.steps) {
      if (entry.name != step) continue;
      const auto found = placed_.values.find(entry.inputs[0]);
      return found != placed_.values.end() && found->second == params;
    }
    return false;
  }

  onnx::Placed& placed_;
  const QuantizedParts& net_;
  const QuantizedOnnxOptions& options_;
  QuantizedOnnxReport& report_;
};

}  // namespace

bool is_quantized_onnx(const std::string& path) {
  return onnx::is_quantized(onnx::read_model(path).graph);
}

QuantizedOnnx import_quantized_onnx(const std::string& path, const QuantizedOnnxOptions& options) {
  return import_quantized_model(onnx::read_model(path), options);
}

QuantizedOnnx import_quantized_model(Model model, const QuantizedOnnxOptions& options) {
  const std::string path = model.path;
  if (!options.onnx.outputs.empty()) {
    model.graph.outputs.clear();
    for (const std::string& name : options.onnx.outputs)
      model.graph.outputs.push_back({.name = name});
  }
  onnx::check_model(model);
  if (!onnx::is_quantized(model.graph)) {
    throw DataError("onnx",
                    path,
                    ": has no quantizer: read this network of floats with import_onnx(), and "
                    "prepare it");
  }
  const FloatGraph graph = onnx::rewrite(model);
  const QuantizedParts net = import_floats(graph, options);
  onnx::Placed placed = onnx::place(net, options.ranges, path);
  QuantizedOnnxReport report{.dialect = graph.dialect};
  SlotChoice choice(placed, net, options, report);
  choice.describe_inputs(path);
  Network network(placed.parts);
  network.eval();
  const std::vector<Site> sites = onnx::sites_of(network, options.config);
  const GivenParams given = choice.given(sites, path);
  choice.refuse_missing(path);
  prepare_given(network, network.example(), choice.config(sites, given), given);
  return {std::move(network), std::move(report)};
}

bool QuantizedOnnxReport::is_complete() const {
  return std::all_of(rows.begin(), rows.end(), [](const QuantizedOnnxRow& row) {
    return row.is_kept || row.kind == QuantizedOnnxRow::kInput;
  });
}

std::ostream& operator<<(std::ostream& stream, const QuantizedOnnxReport& report) {
  TextStream text;
  text << "Quantized ONNX file (" << report.dialect << ")\n";
  constexpr const char* kNames[] = {"input", "weights", "result", "sums"};
  for (const QuantizedOnnxRow& row : report.rows) {
    text << "  " << row.layer << "  " << kNames[row.kind] << "  ";
    if (row.is_kept && !row.params.scale.empty()) text << row.params;
    if (!row.is_kept) text << "anew";
    if (!row.note.empty())
      text << (row.is_kept && row.params.scale.empty() ? "" : ": ") << row.note;
    text << '\n';
  }
  return stream << text.str();
}

}  // namespace quantrain::quant
