#include "layers/network/recording.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "framework/core/error.hpp"
#include "layers/network/layer_type.hpp"

namespace quantrain {
namespace {

/// Draws a position in the order of recording.
class Mark : public Node {
 public:
  std::string_view type() const override { return "mark"; }
  std::vector<Tensor> backward(Tensor) override { return {}; }
};

class Listener : public CallListener {
 public:
  void enter(Module& module) override {
    if (find_layer_type(module) != nullptr) ++depth_;
  }

  void leave(Module& module,
             const std::vector<Tensor>& inputs,
             std::vector<Tensor>& outputs) override {
    if (find_layer_type(module) == nullptr || --depth_ > 0) return;
    if (outputs.size() != 1) {
      throw GraphError(
          module.label(), "gives ", outputs.size(), " results; a registered layer gives one");
    }
    // A tensor of its own, also where the layer returns its input, as Dropout does.
    outputs[0] = outputs[0].detach();
    layers.push_back({&module, Scope::path(), inputs, outputs[0], Mark().sequence()});
  }

  struct LayerCall {
    Module* layer;
    std::string path;
    std::vector<Tensor> inputs;
    Tensor output;
    uint64_t position;
  };
  std::vector<LayerCall> layers;

 private:
  int depth_ = 0;
};

/// Finds what leads to the outputs.
class Collector {
 public:
  Collector(const std::vector<Tensor>& inputs, const std::vector<Listener::LayerCall>& layers)
      : inputs_(inputs), layers_(layers) {}

  /// Adds a call for each layer and operation on which the tensor depends.
  void collect(const Tensor& output) {
    std::vector<Tensor> pending{output};
    while (!pending.empty()) {
      const Tensor tensor = std::move(pending.back());
      pending.pop_back();
      if (!tensor.defined() || is_input(tensor)) continue;
      if (const auto* const layer = layer_of(tensor)) {
        if (!found_.emplace(layer->position, Found{layer, nullptr, tensor}).second) continue;
        pending.insert(pending.end(), layer->inputs.begin(), layer->inputs.end());
      } else if (tensor.node() != nullptr) {
        const std::shared_ptr<Node>& node = tensor.node();
        if (!found_.emplace(node->sequence(), Found{nullptr, node, tensor}).second) continue;
        pending.insert(pending.end(), node->inputs().begin(), node->inputs().end());
      }
    }
  }

  std::vector<Call> calls() {
    size_t index = 0;
    for (auto& [position, found] : found_) found.index = index++;
    std::vector<Call> calls;
    for (const auto& [position, found] : found_) {
      Call call;
      call.position = position;
      call.output = found.tensor;
      if (found.layer != nullptr) {
        call.layer = found.layer->layer;
        call.path = found.layer->path;
      } else {
        call.node = found.node;
        call.path = found.node->scope();
      }
      const auto& inputs = found.layer != nullptr ? found.layer->inputs : found.node->inputs();
      for (const Tensor& input : inputs) call.inputs.push_back(origin(input));
      calls.push_back(std::move(call));
    }
    return calls;
  }

  Origin origin(const Tensor& tensor) const {
    if (!tensor.defined()) return {};
    const auto same = [&](const Tensor& input) { return input.same_as(tensor); };
    const auto input = std::find_if(inputs_.begin(), inputs_.end(), same);
    if (input != inputs_.end())
      return {Origin::kInput, static_cast<size_t>(input - inputs_.begin())};
    if (const auto* const layer = layer_of(tensor))
      return {Origin::kCall, found_.at(layer->position).index};
    if (tensor.node() != nullptr)
      return {Origin::kCall, found_.at(tensor.node()->sequence()).index};
    return {Origin::kLeaf, 0, tensor};
  }

 private:
  struct Found {
    const Listener::LayerCall* layer;
    std::shared_ptr<const Node> node;
    Tensor tensor;
    size_t index = 0;
  };

  bool is_input(const Tensor& tensor) const {
    return std::any_of(
        inputs_.begin(), inputs_.end(), [&](const Tensor& input) { return input.same_as(tensor); });
  }
  const Listener::LayerCall* layer_of(const Tensor& tensor) const {
    const auto found = std::find_if(layers_.begin(), layers_.end(), [&](const auto& call) {
      return call.output.same_as(tensor);
    });
    return found == layers_.end() ? nullptr : &*found;
  }

  const std::vector<Tensor>& inputs_;
  const std::vector<Listener::LayerCall>& layers_;
  std::map<uint64_t, Found> found_;
};

}  // namespace

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return false;
  const Floats x = a.floats(), y = b.floats();
  return std::memcmp(x.data(), y.data(), sizeof(float) * static_cast<size_t>(x.size())) == 0;
}

RecordedCalls record_calls(Module& net, const std::vector<Tensor>& inputs) {
  const NoGrad no_grad;
  const Recording recording;
  Listener listener;
  RecordedCalls result;
  result.values = net(inputs);
  Collector collector(inputs, listener.layers);
  for (const Tensor& output : result.values) {
    if (!output.defined()) throw GraphError(net.label(), "an output is undefined");
    collector.collect(output);
  }
  result.calls = collector.calls();
  for (const Tensor& output : result.values) result.outputs.push_back(collector.origin(output));
  return result;
}

}  // namespace quantrain
