#include "layers/network/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "framework/autograd/ops/concat.hpp"
#include "framework/core/error.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/network/tracer.hpp"
#include "layers/record_graph.hpp"
#include "layers/state.hpp"

namespace quantrain {
namespace {

/// Takes the slots of all modules away, and gives them back.
class EmptySlots {
 public:
  explicit EmptySlots(Module& net) {
    for (const NamedModule& entry : net.named_modules())
      before_.emplace_back(entry.module, std::move(entry.module->slots()));
    for (auto& [module, slots] : before_) {
      module->slots() = {};
      module->slots().folded_weight = slots.folded_weight;
    }
  }
  ~EmptySlots() {
    for (auto& [module, slots] : before_) module->slots() = std::move(slots);
  }
  EmptySlots(const EmptySlots&) = delete;
  EmptySlots& operator=(const EmptySlots&) = delete;

 private:
  std::vector<std::pair<Module*, Slots>> before_;
};

/// Restores the values of buffers, which a pass in training mode changes.
class KeptBuffers {
 public:
  explicit KeptBuffers(const Module& net) : buffers_(net.named_buffers()) {
    for (const NamedState& buffer : buffers_) before_.push_back(buffer.copy());
  }
  ~KeptBuffers() {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (changed(i)) buffers_[i].copy_values(before_[i]);
    }
  }
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

  const std::vector<NamedState>& buffers() const { return buffers_; }
  bool changed(size_t i) const {
    const auto now = buffers_[i].bytes(), then = before_[i].bytes();
    return !std::equal(now.begin(), now.end(), then.begin(), then.end());
  }

 private:
  std::vector<NamedState> buffers_, before_;
};

/// Gives parameters and buffers back what making layers of them changes: their names, and whether
/// they require a gradient.
class KeptParameters {
 public:
  explicit KeptParameters(const Module& net) {
    for (const NamedState& entry : state(net)) {
      if (entry.tensor.defined())
        before_.push_back({entry.tensor, entry.tensor.requires_grad(), entry.tensor.name()});
    }
  }
  ~KeptParameters() {
    for (Before& entry : before_) {
      if (entry.tensor.node() != nullptr) continue;
      entry.tensor.set_requires_grad(entry.requires_grad).set_name(std::move(entry.name));
    }
  }
  KeptParameters(const KeptParameters&) = delete;
  KeptParameters& operator=(const KeptParameters&) = delete;

 private:
  struct Before {
    Tensor tensor;
    bool requires_grad;
    std::string name;
  };
  std::vector<Before> before_;
};

/// Twice as many samples: those of the batch, then others.
Tensor doubled(const Tensor& batch) {
  Tensor other = Tensor::empty(batch.shape());
  const Floats from = batch.floats();
  float* const to = other.mutable_data();
  for (int64_t i = 0; i < batch.elements(); ++i) to[i] = 0.5f * from[i];
  return concat({batch, other}, 0);
}

/// The range that gives an input these parameters. The ends that the parameters give are rounded,
/// so their neighbours are tried, too.
std::optional<Range> range_of(const QParams& params) {
  const auto near = [](float x) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return std::array{x, std::nextafter(x, kInfinity), std::nextafter(x, -kInfinity)};
  };
  const Range range = params.float_range();
  for (const float min : near(range.min)) {
    for (const float max : near(range.max)) {
      try {
        if (integer::input_params({min, max}, "trace") == params) return Range{min, max};
      } catch (const QuantError&) {  // no input has this range
      }
    }
  }
  return std::nullopt;
}

NetworkInput input_of(const Tensor& example, std::string name) {
  NetworkInput input{.name = std::move(name)};
  input.shape.assign(example.shape().begin() + 1, example.shape().end());
  const std::shared_ptr<const Codes> codes =
      example.kind() == ValueKind::kFloat ? example.source_codes() : nullptr;
  if (codes == nullptr) return input;
  input.range = range_of(codes->params);
  if (input.range && codes->features != nullptr) input.features = *codes->features;
  return input;
}

/// Throws: GraphError if a pass in training changed a buffer of a module that is no known layer.
void check_own_buffers(Module& net, const KeptBuffers& kept) {
  std::vector<NamedState> known;
  for (const NamedModule& entry : net.named_modules()) {
    if (find_layer_type(*entry.module) == nullptr) continue;
    for (NamedState& buffer : entry.module->named_buffers()) known.push_back(std::move(buffer));
  }
  for (size_t i = 0; i < kept.buffers().size(); ++i) {
    const NamedState& buffer = kept.buffers()[i];
    const bool of_layer = std::any_of(
        known.begin(), known.end(), [&](const NamedState& entry) { return entry.same_as(buffer); });
    if (of_layer || !kept.changed(i)) continue;
    throw GraphError(net.label(),
                     "its forward() changes the buffer \"",
                     buffer.name,
                     "\" in training: make the module a layer by register_layer "
                     "(layers/network/layer_type.hpp)");
  }
}

/// Throws: GraphError unless the network's outputs are those of the module, in both modes.
void check_outputs(Module& net,
                   Network& traced,
                   const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& doubled_inputs,
                   const RecordedCalls& evaluation,
                   const RecordedCalls& training) {
  const NoGrad no_grad;
  const EvaluationMode mode(traced);
  for (const bool trains : {false, true}) {
    const KeptBuffers kept(traced);
    traced.train(trains);
    const std::vector<Tensor> y = traced(trains ? doubled_inputs : inputs);
    const std::vector<Tensor>& expected = trains ? training.values : evaluation.values;
    for (size_t i = 0; i < y.size(); ++i) {
      if (same_bits(y[i], expected[i])) continue;
      throw GraphError(net.label(),
                       "output ",
                       i,
                       " of the traced network differs: an operation computes what its type, "
                       "attributes and inputs do not say");
    }
  }
}

void copy_slots(Module& net, Module& traced, const NewPath& path) {
  net.slots().preparation->fill(net, traced, path);
  const auto copy = [](Module* from, Module* to) {
    if (from == nullptr || to == nullptr) return;
    copy_state(*from, *to);
    to->train(from->training());
  };
  for (const NamedModule& entry : net.named_modules()) {
    if (!entry.module->has_filled_slot()) continue;
    Slots& from = entry.module->slots();
    Slots& to = traced.find(path(entry.name)).slots();
    for (size_t i = 0; i < std::min(from.inputs.size(), to.inputs.size()); ++i)
      copy(from.inputs[i].get(), to.inputs[i].get());
    copy(from.weight.get(), to.weight.get());
    copy(from.body.get(), to.body.get());
    copy(from.output.get(), to.output.get());
  }
}

}  // namespace

Network trace(Module& net, const Tensor& example) {
  return trace(net, std::vector<Tensor>{example});
}

Network trace(Module& net, const std::vector<Tensor>& examples) {
  check_examples("trace", examples);
  std::vector<NetworkInput> inputs;
  std::vector<Tensor> given, given_twice;
  for (const Tensor& example : examples) {
    inputs.push_back(input_of(
        example, examples.size() == 1 ? "input" : "input" + std::to_string(inputs.size())));
    given.push_back(TensorAccess::as_floats(example));
    given_twice.push_back(doubled(given.back()));
  }
  const KeptParameters kept_parameters(net);
  std::map<std::string, std::string> new_paths;
  std::vector<Module*> sources;
  std::unique_ptr<Network> traced;
  {
    const EmptySlots empty(net);
    const EvaluationMode modes(net);
    const RecordedCalls evaluation = record_calls(net, given);
    RecordedCalls training;
    {
      const KeptBuffers kept(net);
      net.train();
      training = record_calls(net, given_twice);
      check_own_buffers(net, kept);
    }
    TracedParts parts = trace_parts(net, std::move(inputs), evaluation, training);
    traced = std::make_unique<Network>(std::move(parts.parts));
    check_outputs(net, *traced, given, given_twice, evaluation, training);
    new_paths = std::move(parts.new_paths);
    sources = std::move(parts.sources);
  }
  traced->train(net.training());
  for (size_t i = 0; i < sources.size(); ++i)
    traced->steps()[i].layer->train(sources[i]->training());
  if (net.slots().preparation != nullptr) {
    copy_slots(net, *traced, [&](const std::string& path) {
      const auto found = new_paths.find(path);
      return path.empty() || found == new_paths.end() ? path : found->second;
    });
  }
  return std::move(*traced);
}

}  // namespace quantrain
