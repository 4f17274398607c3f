#include "quant/import/onnx/place.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/error.hpp"
#include "layers/record_graph.hpp"
#include "quant/import/onnx/rewriter.hpp"

namespace quantrain::onnx {
namespace {

std::vector<Tensor> zeros(const Network& net) {
  std::vector<Tensor> examples;
  for (const NetworkInput& input : net.inputs()) {
    std::vector<int64_t> shape{1};
    shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    examples.push_back(Tensor::full(Shape(shape), 0.0f));
  }
  return examples;
}

class Placement {
 public:
  Placement(const QuantizedParts& net,
            const std::map<std::string, Range>& ranges,
            const std::string& path)
      : net_(net), ranges_(ranges), path_(path) {
    for (const NetworkInput& input : net.parts.inputs) inputs_.insert(input.name);
    for (const NetworkStep& step : net.parts.steps) steps_[step.name] = &step;
  }

  Placed run() {
    find_sites();
    attach();
    refuse_raw_outputs();
    for (const NetworkInput& input : net_.parts.inputs) place_input(input.name);
    for (const NetworkStep& step : net_.parts.steps) {
      if (!is_quantizer(step.name)) place_value(step.name);
    }
    keep_at_outputs();
    return finish();
  }

 private:
  bool is_quantizer(const std::string& name) const { return net_.quantizers.contains(name); }
  const QParams& quantizer(const std::string& name) const { return net_.quantizers.at(name); }

  /// The value that a name stands for once the quantizers that are not kept are gone.
  const std::string& core(const std::string& name) const {
    const std::string* at = &name;
    while (is_quantizer(*at) && !kept_.contains(*at)) at = &steps_.at(*at)->inputs[0];
    return *at;
  }

  NetworkParts parts_without_quantizers() const {
    NetworkParts parts = net_.parts;
    std::erase_if(parts.steps, [&](const NetworkStep& step) {
      return is_quantizer(step.name) && !kept_.contains(step.name);
    });
    for (NetworkStep& step : parts.steps) {
      for (std::string& input : step.inputs) input = core(input);
    }
    for (std::string& output : parts.outputs) output = core(output);
    return parts;
  }

  // What a network without any quantizer closes ranges with.
  void find_sites() {
    NetworkParts parts = parts_without_quantizers();
    if (parts.steps.empty()) return;
    Network net(std::move(parts));
    net.eval();
    for (const quant::Site& site : sites_of(net, quant::QConfig::int8())) {
      ends_.insert(site.last_path);
      if (site.path != site.last_path) end_of_[site.path] = site.last_path;
      if (!site.batch_norm_path.empty() && site.batch_norm_path != site.last_path)
        end_of_[site.batch_norm_path] = site.last_path;
    }
  }

  [[noreturn]] void refuse_two_ways(const std::string& value,
                                    const QParams& a,
                                    const QParams& b) const {
    throw QuantError("onnx",
                     path_,
                     ": the result of \"",
                     value,
                     "\" is quantized in two ways, ",
                     text_of(a),
                     " and ",
                     text_of(b),
                     "; a value has one range here");
  }

  // Gives each value the parameters of the quantizers that read it. A quantizer of codes is kept,
  // unless it changes nothing.
  void attach() {
    for (const NetworkStep& step : net_.parts.steps) {
      if (!is_quantizer(step.name)) continue;
      const QParams& params = quantizer(step.name);
      const std::string& x = step.inputs[0];
      if (is_quantizer(x)) {
        if (!(quantizer(x) == params)) keep(step.name);
        continue;
      }
      const auto [at, is_new] = given_.emplace(x, params);
      if (!is_new && !(at->second == params)) refuse_two_ways(x, at->second, params);
      quantizers_of_[x].push_back(step.name);
    }
  }

  // An output would get the codes of a quantizer that the file places after it.
  void refuse_raw_outputs() const {
    for (const std::string& output : net_.parts.outputs) {
      if (!quantizers_of_.contains(output)) continue;
      throw QuantError(
          "onnx",
          path_,
          ": the output \"",
          output,
          "\" is a real number, but a quantizer reads it, too; here, a value that is "
          "quantized has codes everywhere: name other outputs in OnnxOptions::outputs");
    }
  }

  void keep(const std::string& quantizer_step) {
    kept_.insert(quantizer_step);
    given_[quantizer_step] = quantizer(quantizer_step);
  }
  /// Keeps the quantizers of a value as steps, which get the parameters in its place.
  void keep_quantizers_of(const std::string& value) {
    for (const std::string& step : quantizers_of_[value]) keep(step);
  }

  void place_input(const std::string& name) {
    if (!given_.contains(name)) return;
    if (ranges_.contains(name)) {
      keep_quantizers_of(name);
      given_.erase(name);
      return;
    }
    const QParams& params = given_.at(name);
    if (params.type.bits != 8) {
      throw QuantError("onnx",
                       path_,
                       ": the input \"",
                       name,
                       "\" has codes of ",
                       params.type.bits,
                       " bits, and an input here has 8: give its range in "
                       "QuantizedOnnxOptions::ranges");
    }
    // An input has all codes of its bits. A step after it lacks the lowest one.
    if (params.type.narrow) keep_quantizers_of(name);
  }

  void place_value(const std::string& name) {
    const auto own = given_.find(name);
    if (own == given_.end() || ends_.contains(name) || carried_.contains(name)) return;
    const QParams params = own->second;
    // A ReLU follows in the same operation. If it has other parameters, the operation ends before.
    if (const auto end = end_of_.find(name); end != end_of_.end()) {
      const auto after = given_.find(end->second);
      if (after != given_.end() && !(after->second == params)) return keep_quantizers_of(name);
      given_[end->second] = params;
      given_.erase(name);
      return;
    }
    // The value has the codes of an earlier one.
    const std::string origin = origin_of(name);
    const auto before = given_.find(origin);
    const bool stays_float = inputs_.contains(origin) && ranges_.contains(origin);
    if (stays_float || (before != given_.end() && !(before->second == params))) {
      if (carried_.contains(origin)) refuse_two_ways(origin, before->second, params);
      keep_quantizers_of(name);
    } else if (before == given_.end()) {
      // What lies between selects and moves values, so it may come after the rounding.
      given_[origin] = params;
      carried_.insert(origin);
      if (inputs_.contains(origin)) {
        place_input(origin);
        if (params.type.narrow) keep_quantizers_of(name);
      }
    }
    given_.erase(name);
  }

  std::string origin_of(const std::string& name) const {
    std::string at = name;
    while (steps_.contains(at) && !ends_.contains(at) && !end_of_.contains(at) &&
           !kept_.contains(at))
      at = core(steps_.at(at)->inputs[0]);
    return at;
  }

  // An output has to come from a layer, not from an input.
  void keep_at_outputs() {
    for (const std::string& output : net_.parts.outputs) {
      if (is_quantizer(output) && inputs_.contains(core(output))) keep(output);
    }
  }

  Placed finish() {
    Placed placed{.parts = parts_without_quantizers()};
    for (auto& [name, params] : given_) {
      if (!inputs_.contains(name)) {
        placed.values[name] = params;
        continue;
      }
      QParams input = params;
      if (input.type.is_signed) {
        input.type = QType{};
        input.zero_point[0] += 128;
      }
      placed.inputs[name] = input;
    }
    return placed;
  }

  const QuantizedParts& net_;
  const std::map<std::string, Range>& ranges_;
  const std::string& path_;
  std::set<std::string> inputs_;
  std::map<std::string, const NetworkStep*> steps_;
  std::set<std::string> ends_;                 // steps after which a range closes
  std::map<std::string, std::string> end_of_;  // of the other steps of such operations
  std::map<std::string, QParams> given_;       // by value
  std::set<std::string> carried_;              // values that got those of a later value
  std::map<std::string, std::vector<std::string>> quantizers_of_;
  std::set<std::string> kept_;  // quantizers that stay as steps
};

}  // namespace

Placed place(const QuantizedParts& net,
             const std::map<std::string, Range>& ranges,
             const std::string& path) {
  return Placement(net, ranges, path).run();
}

std::vector<quant::Site> sites_of(Network& net, const quant::QConfig& config) {
  const std::vector<Tensor> inputs = zeros(net);
  const quantrain::Graph graph = record_graph(net, inputs);
  return quant::Survey(net, graph, inputs, config).sites();
}

}  // namespace quantrain::onnx
