#include "quant/methods/rescale.hpp"

#include <algorithm>
#include <exception>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "layers/activation.hpp"
#include "layers/dry_run.hpp"
#include "layers/record_graph.hpp"
#include "quant/lowering/lowering.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

const std::vector<std::string> kMovesOnly{
    "reshape", "view", "max_pool2d", "avg_pool2d", "mean", "dropout"};

size_t position_of(const std::vector<WiredValue>& wiring, const std::string& layer) {
  for (size_t i = 0; i < wiring.size(); ++i) {
    if (wiring[i].layer == layer) return i;
  }
  throw GraphError("rescale", "there is no layer \"", layer, '"');
}

/// Adds the products that read value `id`, as inputs `as.offset` + c of `as.total`.
void add_readers(const std::vector<WiredValue>& wiring,
                 int id,
                 const Place::Reader& as,
                 Place& place) {
  place.gives_output = place.gives_output || wiring[static_cast<size_t>(id)].is_output;
  for (size_t own = 0; own < wiring.size(); ++own) {
    const WiredValue& reading = wiring[own];
    int64_t before = 0;
    for (const int read : reading.reads) {
      const int64_t channels = wiring[static_cast<size_t>(read)].channels;
      if (read == id) {
        Place::Reader reader = as;
        reader.layer = reading.layer;
        const auto moves = std::find(kMovesOnly.begin(), kMovesOnly.end(), reading.operation);
        if (reading.has_weights) {
          place.readers.push_back(std::move(reader));
        } else if (reading.operation == "concat") {
          int64_t sum = 0;
          for (const int part : reading.reads) sum += wiring[static_cast<size_t>(part)].channels;
          if (channels != as.total || sum != reading.channels) {
            throw QuantError(
                reading.layer,
                "concatenates the value after a flattening, or along another axis than "
                "the channels, which cannot be treated automatically");
          }
          reader.offset += before;
          reader.total = reading.channels;
          add_readers(wiring, static_cast<int>(own), reader, place);
        } else if (moves != kMovesOnly.end() && reading.channels % as.total != 0) {
          throw QuantError(reading.layer,
                           "reads the value by \"",
                           reading.operation,
                           "\", which moves its channels to another axis");
        } else if (moves != kMovesOnly.end()) {
          reader.keeps_mean = reader.keeps_mean && reading.operation != "max_pool2d";
          add_readers(wiring, static_cast<int>(own), reader, place);
        } else {
          throw QuantError(reading.layer,
                           "reads the value by \"",
                           reading.operation,
                           "\": only products, pools, concatenations and reshapes can be treated "
                           "automatically");
        }
      }
      before += channels;
    }
  }
}

/// Calls visit(weight, output, channel) for each weight of a reader that multiplies a channel of
/// the value.
template <class Visit>
void visit_weights(Module& floats, const Place::Reader& reader, int64_t channels, Visit visit) {
  Tensor weight = parameter_of(floats, reader.layer, "weight");
  const ReadChannels read(reader, weight.shape());
  const int64_t per_output = weight.elements() / weight.dim(0);
  float* const w = weight.mutable_data();
  for (int64_t i = 0; i < weight.elements(); ++i) {
    const int64_t channel = read.of(i) - reader.offset;
    if (channel >= 0 && channel < channels) visit(w[i], i / per_output, channel);
  }
}

/// The layer that follows in the same slot: an activation, or null.
const Module* activation_of(Module& floats, const std::string& last, const std::string& affine) {
  return last.empty() || last == affine ? nullptr : &floats.find(last);
}

}  // namespace

Tensor parameter_of(Module& net, const std::string& layer, const char* name) {
  for (const NamedState& entry : net.find(layer).named_parameters()) {
    if (entry.name == name) return entry.tensor;
  }
  throw QuantError(layer, "has no parameter \"", name, "\", which the treatment changes");
}

std::vector<WiredValue> wiring_of(Module& net, const std::vector<Tensor>& examples) {
  const DefaultRounding rounding;
  const DryRun dry_run;
  const SaturatingInputs saturating(net);
  const DeployedMode deployed(net);
  const Graph graph = record_graph(net, examples);
  const Lowered lowered = lower(graph, examples);
  if (lowered.error != nullptr) std::rethrow_exception(lowered.error);
  const integer::Program& program = lowered.program;
  std::vector<WiredValue> wiring;
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Shape& shape = program.values[i].shape;
    wiring.push_back({.layer = program.values[i].name,
                      .slot = "",
                      .operation = "input",
                      .channels = shape.rank() == 0 ? 1 : shape[shape.rank() - 1]});
    const GraphNode& node = graph.node(lowered.nodes[i]);
    if (node.type() == "fake_quantize") wiring.back().slot = node.scope();
  }
  for (const integer::Step& step : program.steps) {
    WiredValue& value = wiring[static_cast<size_t>(step.output)];
    const auto operation = step.origin.about.find("operation");
    value.operation = operation != step.origin.about.end() ? operation->second
                                                           : std::string(type(step.operation));
    value.has_weights = product(step.operation) != nullptr;
    value.reads = step.inputs;
  }
  for (const int id : program.outputs) wiring[static_cast<size_t>(id)].is_output = true;
  return wiring;
}

Place place_of(Module& net, const std::vector<WiredValue>& wiring, const std::string& layer) {
  const size_t at = position_of(wiring, layer);
  const WiredValue& value = wiring[at];
  if (!value.has_weights) {
    throw QuantError(layer,
                     "computes \"",
                     value.operation,
                     "\" without weights: only the value of a product can be treated "
                     "automatically");
  }
  Place place{.affine = layer, .last = value.slot, .channels = value.channels, .readers = {}};
  const auto* const slot =
      dynamic_cast<const WeightQuantizer*>(net.find(layer).slots().weight.get());
  if (slot != nullptr && slot->folding()) place.affine = slot->folding()->path;
  add_readers(wiring, static_cast<int>(at), {.layer = "", .total = value.channels}, place);
  return place;
}

ReadChannels::ReadChannels(const Place::Reader& reader, const Shape& weight)
    : inputs_(weight[weight.rank() - 1]),
      total_(reader.total),
      per_output_(weight.elements() / weight[0]),
      outputs_of_group_(weight[0]) {
  if (inputs_ % total_ == 0) return;
  const int64_t groups = total_ / inputs_;
  if (total_ % inputs_ != 0 || weight[0] % groups != 0) {
    throw QuantError(reader.layer,
                     "reads ",
                     inputs_,
                     " of ",
                     total_,
                     " channels for each output, which cannot be treated automatically");
  }
  outputs_of_group_ /= groups;
}

void scale_channels(Module& floats, const Place& place, const std::vector<float>& factor) {
  const Module* const activation = activation_of(floats, place.last, place.affine);
  if (activation != nullptr && dynamic_cast<const ReLU*>(activation) == nullptr) {
    throw QuantError(
        place.last, "a factor does not pass ", activation->type(), ": it can pass a ReLU");
  }
  for (const Place::Reader& reader : place.readers)
    ReadChannels(reader, parameter_of(floats, reader.layer, "weight").shape());
  Tensor weight = parameter_of(floats, place.affine, "weight");
  const int64_t inner = weight.elements() / place.channels;
  float* const w = weight.mutable_data();
  for (int64_t i = 0; i < weight.elements(); ++i) w[i] *= factor[static_cast<size_t>(i / inner)];
  for (NamedState& entry : floats.find(place.affine).named_parameters()) {
    if (entry.name != "bias") continue;
    float* const bias = entry.tensor.mutable_data();
    for (int64_t c = 0; c < place.channels; ++c) bias[c] *= factor[static_cast<size_t>(c)];
  }
  for (const Place::Reader& reader : place.readers) {
    visit_weights(floats, reader, place.channels, [&](float& value, int64_t, int64_t channel) {
      value /= factor[static_cast<size_t>(channel)];
    });
  }
}

void shift_channels(Module& floats, const Place& place, const std::vector<float>& offset) {
  const Module* const activation = activation_of(floats, place.last, place.affine);
  if (activation != nullptr) {
    throw QuantError(place.last, "an offset does not pass ", activation->type());
  }
  for (const Place::Reader& reader : place.readers) {
    if (parameter_of(floats, reader.layer, "weight").rank() != 2)
      throw QuantError(reader.layer, "an offset passes a Linear, not a window that may be padded");
    parameter_of(floats, reader.layer, "bias");
  }
  Tensor own_bias = parameter_of(floats, place.affine, "bias");
  float* const own = own_bias.mutable_data();
  for (int64_t c = 0; c < place.channels; ++c) own[c] -= offset[static_cast<size_t>(c)];
  for (const Place::Reader& reader : place.readers) {
    Tensor bias = parameter_of(floats, reader.layer, "bias");
    std::vector<double> sums(static_cast<size_t>(bias.elements()), 0.0);
    visit_weights(
        floats, reader, place.channels, [&](float& value, int64_t output, int64_t channel) {
          sums[static_cast<size_t>(output)] +=
              static_cast<double>(value) *
              static_cast<double>(offset[static_cast<size_t>(channel)]);
        });
    float* const values = bias.mutable_data();
    for (size_t o = 0; o < sums.size(); ++o)
      values[o] = static_cast<float>(static_cast<double>(values[o]) + sums[o]);
  }
}

}  // namespace quantrain::quant
