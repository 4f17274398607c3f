#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/module.hpp"
#include "quant/analysis/diagnosis.hpp"

// Changes of a float network that leave its results as they were, but not the values in between.
namespace quantrain::quant {

/// The layers around a value that products read.
struct Place {
  /// A product that reads channel c of the value as inputs offset + c of `total`, perhaps after a
  /// flattening, so that they repeat.
  struct Reader {
    std::string layer;
    int64_t offset = 0;
    int64_t total = 0;
  };
  std::string affine;  ///< path of the layer that computes the value: a product or its batch norm
  std::string last;    ///< path of the layer whose output slot quantizes it, such as a ReLU
  int64_t channels = 0;
  std::vector<Reader> readers;
};

/// Finds the layers around the value of this layer. net: the prepared network that was diagnosed.
/// Throws: QuantError if it is not the value of a product, or if something else than products reads
/// it, with only pools, concatenations and reshapes between.
Place place_of(Module& net, const Diagnosis& diagnosis, const std::string& layer);

/// Multiplies channel c of the value by factor[c] > 0, and divides the weights that read it.
/// Throws: QuantError if the activation between is neither a ReLU nor none.
void scale_channels(Module& floats, const Place& place, const std::vector<float>& factor);
/// Subtracts offset[c] from channel c, and adds its effect to the biases of the readers.
/// Throws: QuantError if there is an activation between, a layer has no bias, or a reader is not a
/// Linear, because a padded window would not see the offset.
void shift_channels(Module& floats, const Place& place, const std::vector<float>& offset);

/// A parameter.   Throws: QuantError naming the layer if it has none of this name.
Tensor parameter_of(Module& net, const std::string& layer, const char* name);

}  // namespace quantrain::quant
