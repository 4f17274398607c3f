#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

struct LayerSummary {
  std::string name;  ///< path; empty for the network itself
  std::string type;
  std::vector<int64_t> output;  ///< shape of the last output; empty if the layer ran no operation
  int64_t parameters = 0;       ///< number of trained values, including those of the layer's slots
  int64_t multiply_adds = 0;    ///< of convolutions and linear layers, for one sample
};

/// A network's layers in the order of named_modules(), and totals.
struct Summary {
  std::vector<LayerSummary> layers;
  int64_t parameters = 0;  ///< a shared parameter counts once
  int64_t multiply_adds = 0;
};

/// Runs the example once, in evaluation mode and without gradients, and lists the layers. A layer
/// that contains others is listed only if it computes something itself or has parameters of its
/// own. The pass leaves the network unchanged.
/// Throws: as check_examples(); what the network throws for this example.
Summary summary(Module& net, const Tensor& example);
/// The same for a network with several inputs or outputs.
Summary summary(Module& net, const std::vector<Tensor>& examples);

/// A table with one line for each layer and one for the totals.
std::ostream& operator<<(std::ostream& stream, const Summary& summary);

}  // namespace quantrain
