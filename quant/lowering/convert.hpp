#pragma once

#include <iosfwd>
#include <vector>

#include "framework/integer/integer_model.hpp"
#include "layers/module.hpp"
#include "quant/lowering/lowering.hpp"

namespace quantrain::quant {

using quantrain::IntegerModel;

/// The integer form of a prepared and calibrated network: its graph, recorded over an example [N,
/// ...] in deployed mode (DeployedMode), lowered node by node.
/// The network is left as it was. The example may be codes or floats.
/// Throws: QuantError if a FakeQuantize was not calibrated, the network was not prepared for codes
/// like the example's, or an accumulator could overflow (7); GraphError or QuantError naming the
/// layer that has no integer form.
IntegerModel convert(Module& net, const Tensor& example);
/// The same for a network with several inputs or outputs.
IntegerModel convert(Module& net, const std::vector<Tensor>& examples);

/// What each layer is converted to, known before training.
struct Plan {
  std::vector<PlanRow> rows;

  /// Whether convert() would succeed, once calibrated.
  bool convertible() const;
};

/// Prints a table: layer, operation, kernel, bits, accumulator bound and the layers folded into it,
/// or why it cannot be converted.
std::ostream& operator<<(std::ostream& stream, const Plan& plan);

/// A dry run of convert() that changes nothing: a FakeQuantize without parameters takes the range
/// of the example.
/// Throws: what running the network throws; GraphError if it was not prepared.
Plan plan(Module& net, const Tensor& example);
Plan plan(Module& net, const std::vector<Tensor>& examples);

}  // namespace quantrain::quant
