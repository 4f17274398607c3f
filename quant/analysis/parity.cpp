#include "quant/analysis/parity.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <span>

#include "framework/autograd/graph.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/integer/classes.hpp"
#include "framework/integer/dead_channels.hpp"
#include "quant/analysis/batch_part.hpp"
#include "quant/analysis/pairing.hpp"
#include "quant/analysis/spread.hpp"
#include "quant/lowering/lowering.hpp"
#include "quant/prepare/input_quantize.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

template <class T>
void compare(int64_t n, const T* a, const T* b, LayerParity& result) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t difference = std::abs(int64_t{a[i]} - int64_t{b[i]});
    result.different += difference != 0;
    result.max_difference = std::max(result.max_difference, difference);
  }
  result.codes += n;
}

/// For each value of the model, the node of the graph that should give the same integers; -1 if the
/// value lost dead channels. Lowering is deterministic: if the graph, lowered again, has the
/// model's wiring and shapes, values at the same position belong together.
std::vector<int> paired_nodes(const Graph& graph,
                              const std::vector<Tensor>& batches,
                              const integer::Program& model) {
  Lowered lowered = lower(graph, batches);
  if (lowered.error != nullptr) std::rethrow_exception(lowered.error);
  const integer::Program& own = lowered.program;
  const bool same_wiring = std::equal(own.steps.begin(),
                                      own.steps.end(),
                                      model.steps.begin(),
                                      model.steps.end(),
                                      [](const integer::Step& a, const integer::Step& b) {
                                        return a.inputs == b.inputs && a.output == b.output;
                                      });
  const auto has_shapes_of = [&](const integer::Program& other) {
    return std::equal(model.values.begin(),
                      model.values.end(),
                      other.values.begin(),
                      other.values.end(),
                      [](const integer::Value& a, const integer::Value& b) {
                        return a.shape == b.shape && a.is_codes() == b.is_codes();
                      });
  };
  if (!same_wiring || own.inputs != model.inputs || own.outputs != model.outputs ||
      (!has_shapes_of(own) && !has_shapes_of(integer::remove_dead_channels(own)))) {
    throw GraphError("parity",
                     "the model was not converted from this network: convert the network again");
  }
  for (size_t id = 0; id < model.values.size(); ++id) {
    if (!(model.values[id].shape == own.values[id].shape)) lowered.nodes[id] = -1;
  }
  return std::move(lowered.nodes);
}

/// Marks the samples of which a row has another class in a than in b.
template <class T>
void mark_changes(const integer::Value& value, const T* a, const T* b, std::vector<bool>& changed) {
  const std::vector<int32_t> factors = integer::class_factors(value);
  const int64_t classes = integer::class_count(value);
  const int64_t outputs = value.shape.elements();
  for (int64_t at = 0; at < std::ssize(changed) * outputs; at += classes) {
    if (integer::class_of(a + at, classes, factors, at) !=
        integer::class_of(b + at, classes, factors, at)) {
      changed[static_cast<size_t>(at / outputs)] = true;
    }
  }
}

/// Throws unless the network's input codes have the meaning that the model expects.
void check_meaning(const Codes& own, const IntegerModel& model, size_t i, const std::string& name) {
  const integer::InputFeatures& features = model.input_features(i);
  const bool same_features = own.features == nullptr ? features.empty() : *own.features == features;
  if (own.params == model.input_params(i) && same_features) return;
  const auto [network, models] =
      describe_inputs(own.params, own.features.get(), model.input_params(i), &features);
  throw QuantError(name,
                   "the network's codes mean ",
                   network,
                   ", and the model's ",
                   models,
                   ": convert the network again");
}

/// The raw values of a batch: undoes the features' offsets and scales.
std::vector<float> raw_values(const Tensor& batch, const integer::InputFeatures& features) {
  const Floats z = batch.floats();
  std::vector<float> raw(z.data(), z.data() + batch.elements());
  for (size_t i = 0; i < raw.size() && !features.empty(); ++i) {
    const size_t f = i % features.scale.size();
    raw[i] = integer::raw_value(raw[i], features.offset[f], features.scale[f]);
  }
  return raw;
}

/// Measures what the codes or sums of a node cost against the values of the float pass.
void add_cost(const GraphNode& node, const Tensor& in_float, LayerParity& result) {
  if (!in_float.defined()) return;
  const Floats values = in_float.floats();
  const Floats integers = node.output.floats();
  const Shape& shape = in_float.shape();
  if (result.is_output) result.channels.resize(static_cast<size_t>(shape[shape.rank() - 1]));
  result.floats += in_float.elements();
  for (int64_t i = 0; i < in_float.elements(); ++i) {
    const double change = static_cast<double>(integers[i]) - static_cast<double>(values[i]);
    result.signal += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    result.noise += change * change;
    if (result.channels.empty()) continue;
    ParityCost& channel = result.channels[static_cast<size_t>(i) % result.channels.size()];
    channel.signal += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    channel.noise += change * change;
  }
  const bool has_range = node.type() == "fake_quantize" || node.type() == "input_quantize";
  if (!has_range || node.output.kind() != ValueKind::kCodes) return;
  const QParams& params = node.output.codes()->params;
  for (int64_t i = 0; i < in_float.elements(); ++i) {
    const float code = unclamped_code(values[i], params.scale[0], params.zero_point[0]);
    const bool inside = code >= static_cast<float>(params.type.qmin()) &&
                        code <= static_cast<float>(params.type.qmax());
    result.saturated += inside ? 0 : 1;
  }
}

// Samples that also run in float. Precision needs fewer than parity.
constexpr int64_t kMeasured = 256;

/// Adds the costs to the layers of a chunk, whose steps have these nodes, from these samples.
void add_costs(Module& net,
               const std::vector<Tensor>& batches,
               std::span<const int64_t> samples,
               Parity& parity) {
  if (samples.empty()) return;
  parity.measured += std::ssize(samples);
  std::vector<Tensor> inputs;
  for (const Tensor& batch : batches) inputs.push_back(batch_samples(batch, samples));
  const Graph graph = record_graph(net, inputs);
  const Lowered lowered = lower(graph, inputs);
  const Graph floats = [&] {
    const FloatMode mode(net);
    return record_graph(net, inputs);
  }();
  std::vector<bool> seen(parity.layers.size(), false);
  for (size_t id = 0; id < lowered.nodes.size(); ++id) {
    const GraphNode& node = graph.node(lowered.nodes[id]);
    const std::string& name = lowered.program.values[id].name;
    const auto input = std::find(
        lowered.program.inputs.begin(), lowered.program.inputs.end(), static_cast<int>(id));
    const Tensor in_float =
        input != lowered.program.inputs.end()
            ? inputs[static_cast<size_t>(input - lowered.program.inputs.begin())]
            : paired(graph, node, floats);
    for (size_t i = 0; i < parity.layers.size(); ++i) {
      if (seen[i] || parity.layers[i].name != name) continue;
      seen[i] = true;
      add_cost(node, in_float, parity.layers[i]);
      break;
    }
  }
}

Parity verify_chunk(Module& net, const IntegerModel& model, const std::vector<Tensor>& batches) {
  const DefaultRounding rounding;
  const int64_t n = batches[0].dim(0);
  const integer::Program& program = model.program();
  const Graph graph = record_graph(net, batches);
  const std::vector<int> nodes = paired_nodes(graph, batches, program);
  const auto output_of = [&](int id) -> const Tensor& {
    return graph.node(nodes[static_cast<size_t>(id)]).output;
  };
  Parity parity;
  parity.images = n;
  std::vector<Buffer<uint8_t>> codes;
  std::vector<const uint8_t*> inputs;
  for (size_t i = 0; i < batches.size(); ++i) {
    const integer::Value& value = program.value(program.inputs[i]);
    const auto count = static_cast<size_t>(batches[i].elements());
    Buffer<uint8_t>& input = codes.emplace_back(batches[i].elements());
    const Codes& own = *output_of(program.inputs[i]).codes();
    check_meaning(own, model, i, value.name);
    model.quantize_input(raw_values(batches[i], value.features), {input.data(), count}, i);
    LayerParity result{.name = value.name};
    if (const std::shared_ptr<const Codes> given = input_codes(batches[i])) {
      LayerParity both;
      compare(input.size(), given->u8(), input.data(), both);
      parity.codes_from_floats += both.codes;
      parity.codes_from_floats_different += both.different;
      std::copy_n(given->u8(), input.size(), input.data());
    }
    compare(input.size(), own.u8(), input.data(), result);
    parity.layers.push_back(result);
    inputs.push_back(input.data());
  }

  std::vector<bool> changed(static_cast<size_t>(n), false);
  model.trace(n, inputs, [&](size_t position, const void* output) {
    const int id = program.steps[position].output;
    const integer::Value& value = program.value(id);
    if (nodes[static_cast<size_t>(id)] < 0) return;  // dead channels were removed
    const int64_t outputs = value.shape.elements();
    LayerParity result{.name = value.name};
    const auto times = std::count(program.outputs.begin(), program.outputs.end(), id);
    const auto compare_all = [&](const auto* own, const auto* other) {
      compare(n * outputs, own, other, result);
      if (times == 0) return;
      result.is_output = true;
      parity.logits += result.codes;
      parity.logits_different += result.different;
      parity.max_logit_difference = std::max(parity.max_logit_difference, result.max_difference);
      mark_changes(value, own, other, changed);
    };
    if (value.is_codes()) {
      compare_all(output_of(id).codes()->u8(), static_cast<const uint8_t*>(output));
    } else {
      compare_all(TensorAccess::waiting(output_of(id))->sums()->values,
                  static_cast<const int32_t*>(output));
    }
    parity.layers.push_back(result);
  });
  parity.top1_disagreements = std::count(changed.begin(), changed.end(), true);
  return parity;
}

}  // namespace

Parity verify_parity(Module& net, const IntegerModel& model, const Tensor& batch) {
  return verify_parity(net, model, std::vector<Tensor>{batch});
}

Parity verify_parity(Module& net, const IntegerModel& model, const std::vector<Tensor>& batches) {
  return detail::verify(net, model, batches, spread(detail::batch_size(batches), kMeasured));
}

detail::ParitySamples::ParitySamples(int64_t n) {
  if (n > 0) picked_ = spread(n, kMeasured);
}

std::vector<int64_t> detail::ParitySamples::next(const std::vector<Tensor>& batch) {
  const int64_t n = batch_size(batch);
  if (!picked_) picked_ = spread(n, kMeasured);
  std::vector<int64_t> own;
  for (const int64_t i : *picked_) {
    if (i >= seen_ && i < seen_ + n) own.push_back(i - seen_);
  }
  seen_ += n;
  return own;
}

int64_t detail::batch_size(const std::vector<Tensor>& batches) {
  if (batches.empty() || !batches[0].defined() || batches[0].shape().rank() < 1) return 0;
  return batches[0].dim(0);
}

Parity detail::verify(Module& net,
                      const IntegerModel& model,
                      const std::vector<Tensor>& batches,
                      const std::vector<int64_t>& measured) {
  if (batches.size() != model.input_count()) {
    throw ShapeError(
        "parity", "the model takes ", model.input_count(), " inputs, got ", batches.size());
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    if (!batches[i].defined()) throw GraphError("parity", "batch ", i, " is undefined");
    const Shape& shape = batches[i].shape();
    if (shape.rank() < 1) throw ShapeError("parity", "needs a batch [N, ...], got ", shape);
    if (!(Shape(std::span(shape.begin() + 1, shape.end())) == model.input_shape(i))) {
      throw ShapeError(
          "parity", "the model takes samples ", model.input_shape(i), ", got a batch ", shape);
    }
    if (shape[0] != batches[0].dim(0))
      throw ShapeError("parity", "batches of different sizes: ", batches[0].shape(), ", ", shape);
  }
  const int64_t n = batches[0].dim(0);
  if (n == 0) throw DataError("parity", "nothing to compare: the batch is empty");
  const DeployedMode deployed(net);
  Parity total;
  for (int64_t first = 0; first < n; first += IntegerModel::kChunk) {
    const int64_t count = std::min(IntegerModel::kChunk, n - first);
    std::vector<Tensor> chunk;
    for (const Tensor& batch : batches) chunk.push_back(batch_part(batch, first, count));
    std::vector<int64_t> own;
    for (const int64_t i : measured) {
      if (i >= first && i < first + count) own.push_back(i - first);
    }
    Parity part = verify_chunk(net, model, chunk);
    add_costs(net, chunk, own, part);
    total.add(part);
  }
  return total;
}

}  // namespace quantrain::quant
