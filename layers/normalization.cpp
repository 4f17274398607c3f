#include "layers/normalization.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "framework/core/error.hpp"
#include "layers/batch_norm.hpp"
#include "layers/conv1d.hpp"
#include "layers/conv2d.hpp"
#include "layers/linear.hpp"
#include "layers/moves.hpp"
#include "layers/record_graph.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "fold_normalization";

void check(const Normalization& n, int64_t channels) {
  for (const std::vector<float>* numbers : {&n.mean, &n.deviation}) {
    const auto size = static_cast<int64_t>(numbers->size());
    if (size != 1 && size != channels) {
      throw DataError(kWhere,
                      numbers == &n.mean ? "mean" : "deviation",
                      " has ",
                      size,
                      " numbers: expected one, or one for each of the ",
                      channels,
                      " channels");
    }
    for (const float number : *numbers) {
      const bool valid = std::isfinite(number) && (numbers == &n.mean || number > 0.0f);
      if (!valid)
        throw DataError(kWhere, "a mean is not finite, or a deviation not positive: ", number);
    }
  }
}

/// A mean in other units than x, such as one of bytes where x is in [0, 1], is a mistake.
void check_units(const Normalization& n, const Tensor& example) {
  const auto codes = example.source_codes();
  if (codes == nullptr || codes->features != nullptr) return;
  const Range range = codes->params.float_range();
  for (const float mean : n.mean) {
    if (mean >= range.min && mean <= range.max) continue;
    throw DataError(kWhere,
                    "a mean of ",
                    mean,
                    " lies outside of the example's range [",
                    range.min,
                    ", ",
                    range.max,
                    "]: give mean and deviation in the units of the network's input");
  }
}

double at(const std::vector<float>& numbers, int64_t channel) {
  return static_cast<double>(numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(channel)]);
}

/// The first layer with weights.
struct First {
  std::string name;
  Module* layer = nullptr;
  Tensor weight, bias;
  int64_t groups = 1;
  bool pads = false;
  bool has_ones = false;      ///< the last input channel is that of a OnesChannel
  BatchNorm* norm = nullptr;  ///< reads the layer's result, and nothing else does
};

Module* module_at(Module& net, const std::string& path) {
  for (const NamedModule& entry : net.named_modules()) {
    if (entry.name == path) return entry.module;
  }
  return nullptr;
}

/// The only node that reads the tensor.
const GraphNode& only_reader(const Graph& graph, const std::vector<int>& readers) {
  if (readers.size() != 1)
    throw GraphError(kWhere, readers.size(), " operations read the input: expected one layer");
  return graph.node(readers[0]);
}

First first_layer(Module& net, const Tensor& example) {
  const Graph graph = record_graph(net, example);
  First first;
  const GraphNode* node = &only_reader(graph, graph.consumers(example));
  for (;; node = &only_reader(graph, node->consumers)) {
    if (dynamic_cast<OnesChannel*>(module_at(net, node->scope())) != nullptr) {
      first.has_ones = true;
    } else if (!node->node->traits().is_view) {
      break;
    }
  }
  first.name = node->scope();
  Module* const layer = module_at(net, node->scope());
  first.layer = layer;
  if (const auto* const linear = dynamic_cast<Linear*>(layer)) {
    first.weight = linear->weight();
    first.bias = linear->bias();
  } else if (const auto* const conv = dynamic_cast<Conv2d*>(layer)) {
    first.weight = conv->weight();
    first.bias = conv->bias();
    first.groups = conv->options().groups;
    first.pads = conv->options().padding.h > 0 || conv->options().padding.w > 0;
  } else if (const auto* const conv1d = dynamic_cast<Conv1d*>(layer)) {
    first.weight = conv1d->weight();
    first.bias = conv1d->bias();
    first.groups = conv1d->options().groups;
    first.pads = conv1d->options().padding > 0;
  }
  const int weight = node->node->traits().weight;
  if (!first.weight.defined() || weight < 0) {
    throw GraphError(first.name.empty() ? net.label() : first.name,
                     "the first operation is ",
                     node->type(),
                     ": fold_normalization needs a Conv2d, Conv1d or Linear there");
  }
  if (!node->inputs[static_cast<size_t>(weight)].same_as(first.weight)) {
    throw GraphError(first.name,
                     "is prepared for quantization: call fold_normalization before prepare_qat");
  }
  if (graph.consumers(first.weight).size() != 1)
    throw GraphError(first.name, "other layers use this weight, too, but their inputs are not x");
  if (node->consumers.size() == 1) {
    const GraphNode& next = graph.node(node->consumers[0]);
    first.norm = dynamic_cast<BatchNorm*>(module_at(net, next.scope()));
  }
  return first;
}

/// Whether the layer still has the weight that an earlier call left.
bool was_folded(const First& first) {
  const Floats weight = first.weight.floats();
  return std::ranges::equal(std::span(weight.data(), static_cast<size_t>(weight.size())),
                            first.layer->slots().folded_weight);
}

}  // namespace

void fold_normalization(Module& net, const Tensor& example, const Normalization& normalization) {
  check_examples(kWhere, {example});
  const int64_t channels = example.shape().back();
  check(normalization, channels);
  check_units(normalization, example);
  if (!net.slots().inputs.empty())
    throw GraphError(net.label(),
                     "is prepared: call fold_normalization before prepare_qat or prepare_ptq");
  First first = first_layer(net, example);
  const std::string& where = first.name.empty() ? net.label() : first.name;
  if (was_folded(first)) {
    throw GraphError(where,
                     "was folded already, and its weight is still what that left: fold only once; "
                     "of two normalizations, fold the combined mean and deviation");
  }
  if (first.pads && !first.has_ones) {
    throw GraphError(
        where,
        "pads with zeros, which stand for the mean of normalized inputs and have no exact code of "
        "x: write Sequential{OnesChannel{}, ...} with one more input channel, whose weights are 0, "
        "or declare mean and deviation as features of the data and do not fold");
  }
  if (!first.has_ones && !first.bias.defined() && first.norm == nullptr) {
    throw GraphError(where,
                     "has neither a bias nor a batch norm after it: give it a bias of 0, to which "
                     "fold_normalization adds the means");
  }
  // Channel i of a weight's last axis is channel i of x; after a Flatten, i modulo C.
  const int64_t outputs = first.weight.dim(0);
  const int64_t inputs = first.weight.shape().back();
  const int64_t taps = first.weight.elements() / (outputs * inputs);
  const int64_t given = first.has_ones ? inputs - 1 : inputs;
  if (first.has_ones && first.groups != 1)
    throw GraphError(where, "has groups: a channel of ones can be in one of them only");
  if (first.groups == 1 && given % channels != 0)
    throw GraphError(where, given, " inputs are no multiple of the ", channels, " channels of x");
  std::vector<float>& folded = first.layer->slots().folded_weight;
  folded.reserve(static_cast<size_t>(first.weight.elements()));
  Tensor constant = first.bias.defined()    ? first.bias
                    : first.norm != nullptr ? first.norm->running_mean()
                                            : Tensor();
  float* const weight = first.weight.mutable_data();
  float* const constants = constant.defined() ? constant.mutable_data() : nullptr;
  if (first.has_ones) {
    for (int64_t row = 0; row < outputs * taps; ++row) {
      if (weight[row * inputs + given] == 0.0f) continue;
      throw GraphError(where,
                       "a weight of the channel of ones is ",
                       weight[row * inputs + given],
                       ", expected 0: set these weights to 0, and fold only once");
    }
  }
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t first_channel = o / (outputs / first.groups) * inputs;
    double shift = 0.0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      float* const row = weight + (o * taps + tap) * inputs;
      double of_tap = 0.0;
      for (int64_t i = 0; i < given; ++i) {
        const int64_t channel = (first_channel + i) % channels;
        const double scaled = static_cast<double>(row[i]) / at(normalization.deviation, channel);
        row[i] = static_cast<float>(scaled);
        of_tap -= scaled * at(normalization.mean, channel);
      }
      if (first.has_ones) row[given] = static_cast<float>(static_cast<double>(row[given]) + of_tap);
      shift += of_tap;
    }
    if (first.has_ones) continue;
    float& number = constants[o];
    number =
        static_cast<float>(static_cast<double>(number) + (first.bias.defined() ? shift : -shift));
  }
  folded.assign(weight, weight + first.weight.elements());
}

}  // namespace quantrain
