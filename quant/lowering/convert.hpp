#pragma once

#include <iosfwd>
#include <vector>

#include "framework/integer/integer_model.hpp"
#include "layers/module.hpp"
#include "quant/lowering/lowering.hpp"

namespace quantrain::quant {

using quantrain::IntegerModel;

/// Converts a prepared and calibrated network to integers: records its graph while it runs on an
/// example [N, ...] in deployed mode (DeployedMode), and lowers the graph node by node. The example
/// may hold codes or floats. The network is left as it was.
/// The metadata of a Network become those of the model, with "classes" and "features": the names of
/// its classes, and those of its only input's features, as JSON lists: metadata_names() reads them.
/// Throws: as check_examples(); what running the network throws; QuantError if a FakeQuantize was
/// not calibrated, the example's codes have other parameters or features than the network was
/// prepared for, or an accumulator could overflow (docs/quantization.md (7)); GraphError if the
/// network was not prepared; GraphError or QuantError naming the layer that has no integer form.
IntegerModel convert(Module& net, const Tensor& example);
/// The same for a network with several inputs or outputs.
IntegerModel convert(Module& net, const std::vector<Tensor>& examples);

/// What each layer is converted to, known before training.
struct Plan {
  std::vector<PlanRow> rows;

  /// Whether convert() would succeed once the network is calibrated.
  bool convertible() const;
};

/// Prints a table with a row for each layer. The row has the layer's operation, its kernel, the
/// bits of weights and output ("8 -> 4" if lower_bits() will bring 8 down to 4), the accumulator
/// bound, and the paths of the fused layers; or it says why the layer cannot be converted. A line
/// follows for each operand of a concatenation or addition that loses 3 bits or more, and for each
/// channel of an output that gets fewer than 16 codes: in the example, if it holds 8 samples or
/// more, else estimated from the weights.
std::ostream& operator<<(std::ostream& stream, const Plan& plan);

/// A dry run of convert(). In this run, a FakeQuantize without parameters uses the range of the
/// values that it gets. It discards this range afterwards, so the network does not change.
/// Throws: as check_examples(); what running the network throws; GraphError if the network was not
/// prepared.
Plan plan(Module& net, const Tensor& example);
Plan plan(Module& net, const std::vector<Tensor>& examples);

}  // namespace quantrain::quant
