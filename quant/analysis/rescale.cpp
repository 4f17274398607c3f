#include "quant/analysis/rescale.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "layers/activation.hpp"
#include "quant/prepare/weight_quantizer.hpp"

namespace quantrain::quant {
namespace {

const std::vector<std::string> kMovesOnly{"reshape", "max_pool2d", "avg_pool2d", "mean", "dropout"};

size_t position_of(const Diagnosis& diagnosis, const std::string& layer) {
  for (size_t i = 0; i < diagnosis.layers.size(); ++i) {
    if (diagnosis.layers[i].name == layer) return i;
  }
  throw GraphError("treat", "there is no layer \"", layer, '"');
}

/// Adds the products that read value `id`, whose channels are inputs offset + c of `total`.
void add_readers(const Diagnosis& diagnosis, int id, int64_t offset, int64_t total, Place& place) {
  for (const LayerDiagnosis& layer : diagnosis.layers) {
    int64_t before = 0;
    for (const int read : layer.reads) {
      const int64_t channels = diagnosis.layers[static_cast<size_t>(read)].channels;
      if (read == id) {
        const int own = static_cast<int>(&layer - diagnosis.layers.data());
        const auto& moves = kMovesOnly;
        if (layer.weights) {
          place.readers.push_back({layer.name, offset, total});
        } else if (layer.operation == "concat") {
          add_readers(diagnosis, own, before + offset, layer.channels, place);
        } else if (std::find(moves.begin(), moves.end(), layer.operation) != moves.end() ||
                   layer.operation == "view") {
          add_readers(diagnosis, own, offset, total, place);
        } else {
          throw QuantError(layer.name,
                           "reads the value by \"",
                           layer.operation,
                           "\": only products, pools, concatenations and reshapes can be treated "
                           "automatically");
        }
      }
      before += channels;
    }
  }
}

/// Calls visit(weight, channel) for each weight of a reader that multiplies a channel of the value.
template <class Visit>
void visit_weights(Module& floats, const Place::Reader& reader, int64_t channels, Visit visit) {
  Tensor weight = parameter_of(floats, reader.layer, "weight");
  const int64_t inputs = weight.dim(weight.rank() - 1);
  if (inputs % reader.total != 0) {
    throw QuantError(reader.layer,
                     "reads ",
                     inputs,
                     " of ",
                     reader.total,
                     " channels for each output: groups cannot be treated automatically");
  }
  float* const w = weight.mutable_data();
  for (int64_t i = 0; i < weight.elements(); ++i) {
    const int64_t channel = i % inputs % reader.total - reader.offset;
    if (channel >= 0 && channel < channels) visit(w[i], i / inputs, channel);
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

Place place_of(Module& net, const Diagnosis& diagnosis, const std::string& layer) {
  const size_t at = position_of(diagnosis, layer);
  const LayerDiagnosis& row = diagnosis.layers[at];
  if (!row.weights) {
    throw QuantError(layer,
                     "computes \"",
                     row.operation,
                     "\" without weights: only the value of a product can be treated "
                     "automatically");
  }
  Place place{.affine = layer, .last = row.slot, .channels = row.channels, .readers = {}};
  const auto* const slot =
      dynamic_cast<const WeightQuantizer*>(net.find(layer).slots().weight.get());
  if (slot != nullptr && slot->folding()) place.affine = slot->folding()->path;
  add_readers(diagnosis, static_cast<int>(at), 0, row.channels, place);
  return place;
}

void scale_channels(Module& floats, const Place& place, const std::vector<float>& factor) {
  const Module* const activation = activation_of(floats, place.last, place.affine);
  if (activation != nullptr && dynamic_cast<const ReLU*>(activation) == nullptr) {
    throw QuantError(
        place.last, "a factor does not pass ", activation->type(), ": it can pass a ReLU");
  }
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
