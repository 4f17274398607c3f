#include "quant/analysis/parity.hpp"

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "framework/autograd/ops/channel_accumulators.hpp"
#include "framework/core/error.hpp"
#include "quant/training/prepare.hpp"
#include "quant/training/switches.hpp"

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

const GraphNode& node_at(const Graph& graph, int index, const std::string& layer) {
  if (index < 0 || index >= static_cast<int>(graph.nodes().size())) {
    throw GraphError(layer, "the model was not converted from this network: no node ", index);
  }
  return graph.node(index);
}

const Codes& codes_of(const Graph& graph, int index, int64_t elements, const std::string& layer) {
  const Tensor& output = node_at(graph, index, layer).output;
  if (output.kind() != ValueKind::kCodes || output.elements() != elements) {
    throw GraphError(layer,
                     "the model was not converted from this network: ",
                     output.shape(),
                     " is not its output");
  }
  return *output.codes();
}

const int32_t* accumulators_of(const Graph& graph,
                               int index,
                               int64_t elements,
                               const std::string& layer) {
  const Tensor& output = node_at(graph, index, layer).output;
  const auto* values = output.kind() == ValueKind::kAccumulators
                           ? dynamic_cast<const ChannelAccumulators*>(output.accumulators().get())
                           : nullptr;
  if (values == nullptr || output.elements() != elements) {
    throw GraphError(layer,
                     "the model was not converted from this network: ",
                     output.shape(),
                     " is not its output");
  }
  return values->values();
}

// Logits are those of the simulation and of the model, n rows of integers.
void compare_logits(int64_t n,
                    int64_t outputs,
                    const std::vector<int32_t>& a,
                    const std::vector<int32_t>& b,
                    Parity& parity) {
  LayerParity all;
  compare(n * outputs, a.data(), b.data(), all);
  parity.logits = all.codes;
  parity.logits_different = all.different;
  parity.max_logit_difference = all.max_difference;
  for (int64_t i = 0; i < n; ++i) {
    const auto best = [&](const std::vector<int32_t>& logits) {
      const auto row = logits.begin() + i * outputs;
      return std::max_element(row, row + outputs) - row;
    };
    parity.top1_disagreements += best(a) != best(b);
  }
}

Parity verify_chunk(Module& net, const IntegerModel& model, const Tensor& batch) {
  const int64_t n = batch.dim(0);
  const Graph graph = record_graph(net, batch);
  Parity parity;
  parity.images = n;
  Buffer<uint8_t> input(n * model.input_shape().elements());
  const Floats floats = batch.floats();
  model.quantize_input(n, floats, input.data());
  LayerParity first{.name = "input"};
  compare(input.size(),
          codes_of(graph, model.input_node(), input.size(), "input").u8(),
          input.data(),
          first);
  parity.layers.push_back(first);

  std::vector<int32_t> simulated(static_cast<size_t>(n * model.outputs()));
  std::vector<int32_t> deployed(simulated.size());
  model.trace(n, input.data(), [&](size_t position, const void* output) {
    const IntegerModel::Layer& layer = model.layers()[position];
    const int64_t elements = n * layer.layer->output_shape().elements();
    LayerParity result{.name = layer.layer->name()};
    const bool last = position + 1 == model.layers().size();
    if (layer.layer->output_kind() == OutputKind::kAccumulators) {
      const int32_t* const own = accumulators_of(graph, layer.node, elements, layer.layer->name());
      const auto* const other = static_cast<const int32_t*>(output);
      compare(elements, own, other, result);
      std::copy_n(own, elements, simulated.begin());
      std::copy_n(other, elements, deployed.begin());
    } else {
      const uint8_t* const own = codes_of(graph, layer.node, elements, layer.layer->name()).u8();
      const auto* const other = static_cast<const uint8_t*>(output);
      compare(elements, own, other, result);
      if (last) {
        std::copy_n(own, elements, simulated.begin());
        std::copy_n(other, elements, deployed.begin());
      }
    }
    parity.layers.push_back(result);
  });
  compare_logits(n, model.outputs(), simulated, deployed, parity);
  return parity;
}

double share_equal(int64_t different, int64_t all) {
  return all == 0 ? 1.0 : 1.0 - static_cast<double>(different) / static_cast<double>(all);
}

}  // namespace

int64_t Parity::codes() const {
  int64_t codes = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) codes += layers[i].codes;
  return codes;
}

int64_t Parity::codes_different() const {
  int64_t different = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) different += layers[i].different;
  return different;
}

double Parity::codes_equal() const { return share_equal(codes_different(), codes()); }

double Parity::logits_equal() const { return share_equal(logits_different, logits); }

int64_t Parity::max_code_difference() const {
  int64_t difference = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    difference = std::max(difference, layers[i].max_difference);
  return difference;
}

std::string Parity::first_difference() const {
  for (const LayerParity& layer : layers) {
    if (layer.different != 0) return layer.name;
  }
  return {};
}

void Parity::add(const Parity& other) {
  if (layers.empty()) {
    *this = other;
    return;
  }
  if (other.layers.empty()) return;
  if (other.layers.size() != layers.size()) {
    throw GraphError("parity", layers.size(), " layers cannot be added to ", other.layers.size());
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].codes += other.layers[i].codes;
    layers[i].different += other.layers[i].different;
    layers[i].max_difference = std::max(layers[i].max_difference, other.layers[i].max_difference);
  }
  images += other.images;
  logits += other.logits;
  logits_different += other.logits_different;
  max_logit_difference = std::max(max_logit_difference, other.max_logit_difference);
  top1_disagreements += other.top1_disagreements;
}

void Parity::print(std::ostream& stream) const {
  for (const LayerParity& layer : layers) {
    stream << "  " << layer.name << ": " << layer.different << " of " << layer.codes
           << " integers differ, at most by " << layer.max_difference << '\n';
  }
  stream << "  logits: " << logits_different << " of " << logits << " differ; "
         << top1_disagreements << " of " << images << " predictions change\n";
  if (const std::string first = first_difference(); !first.empty())
    stream << "  first difference: " << first << '\n';
}

Parity verify_parity(Module& net, const IntegerModel& model, const Tensor& batch) {
  if (batch.rank() < 1) throw ShapeError("parity", "needs a batch [N, ...], got ", batch.shape());
  if (!(Shape(std::span(batch.shape().begin() + 1, batch.shape().end())) == model.input_shape())) {
    throw ShapeError(
        "parity", "the model takes samples ", model.input_shape(), ", got ", batch.shape());
  }
  if (batch.dim(0) == 0) throw DataError("parity", "nothing to compare: the batch is empty");
  const DeployedMode deployed(net);
  Parity total;
  std::vector<int64_t> extents(batch.shape().begin(), batch.shape().end());
  const int64_t sample = batch.elements() / batch.dim(0);
  const Floats floats = batch.floats();
  for (int64_t first = 0; first < batch.dim(0); first += IntegerModel::kChunk) {
    extents[0] = std::min(IntegerModel::kChunk, batch.dim(0) - first);
    const std::span<const float> values(floats.data() + first * sample,
                                        static_cast<size_t>(extents[0] * sample));
    total.add(verify_chunk(net, model, Tensor::from(Shape(extents), values)));
  }
  return total;
}

}  // namespace quantrain::quant
