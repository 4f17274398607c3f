#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/module.hpp"

// Changes of a network's parameters that leave its float results as they were, but not the values
// in between.
namespace quantrain::quant {

/// A value of a prepared network, an input or the output of a layer, and what it is computed from.
struct WiredValue {
  std::string layer;      ///< path of the layer that computes it
  std::string slot;       ///< path of the layer whose output slot quantizes it; empty: none
  std::string operation;  ///< "conv2d"; "input"
  int64_t channels = 0;   ///< along the last axis
  bool has_weights = false;
  bool is_output = false;    ///< an output of the network
  std::vector<int> reads{};  ///< positions in the list of all values
};

/// The values of a prepared network, which need not be calibrated, in the order in which they are
/// computed. The network does not change.
/// Throws: what plan() throws, and the first error of a layer that has no integer form.
std::vector<WiredValue> wiring_of(Module& net, const std::vector<Tensor>& examples);

/// The layers around a value that products read.
struct Place {
  /// A product that reads channel c of the value as inputs offset + c of `total`, perhaps after a
  /// flattening, so that they repeat.
  struct Reader {
    std::string layer;
    int64_t offset = 0;
    int64_t total = 0;
    bool keeps_mean = true;  ///< no max pool lies between, so each channel has the value's mean
  };
  std::string affine;  ///< path of the layer that computes the value: a product or its batch norm
  std::string last;    ///< path of the layer whose output slot quantizes it, such as a ReLU
  int64_t channels = 0;
  bool gives_output = false;  ///< the value is also an output of the network, perhaps pooled
  std::vector<Reader> readers;
};

/// Finds the layers around the value of this layer.
/// Throws: GraphError if there is no such value; QuantError if it is not the value of a product, or
/// if something else than products reads it, with only pools, concatenations and reshapes between.
Place place_of(Module& net, const std::vector<WiredValue>& wiring, const std::string& layer);

/// The input channel of the value's `reader.total` that a weight multiplies.
/// weight: [O, ..., I] of the reader; with several groups, I is the number of inputs of one group.
/// i: index of the element.
class ReadChannels {
 public:
  /// Throws: QuantError naming the reader if the numbers of channels do not fit.
  ReadChannels(const Place::Reader& reader, const Shape& weight);
  int64_t of(int64_t i) const {
    const int64_t group = i / per_output_ / outputs_of_group_;
    return (group * inputs_ + i % inputs_) % total_;
  }

 private:
  int64_t inputs_;
  int64_t total_;
  int64_t per_output_;
  int64_t outputs_of_group_;
};

/// Multiplies channel c of the value by factor[c] > 0, and divides the weights that read it.
/// Throws: QuantError if the activation between is neither a ReLU nor none; then nothing changes.
void scale_channels(Module& floats, const Place& place, const std::vector<float>& factor);
/// Subtracts offset[c] from channel c, and adds its effect to the biases of the readers.
/// Throws: QuantError if there is an activation between, a layer has no bias, or a reader is not a
/// Linear, because a padded window would not see the offset.
void shift_channels(Module& floats, const Place& place, const std::vector<float>& offset);

/// A parameter.   Throws: QuantError naming the layer if it has none of this name.
Tensor parameter_of(Module& net, const std::string& layer, const char* name);

}  // namespace quantrain::quant
