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
/// The network is left as it was.
/// The example may be codes or floats.
/// Throws: QuantError if a FakeQuantize was not calibrated, the example's codes are not what the
/// network was prepared for, or an accumulator could overflow (7); GraphError or QuantError naming
/// the layer for what has no integer form.
IntegerModel convert(Module& net, const Tensor& example);
/// The same for a network that takes and gives lists.
IntegerModel convert(Module& net, const std::vector<Tensor>& examples);

/// What becomes of each layer, before an epoch is spent.
struct Plan {
  std::vector<PlanRow> rows;

  /// Whether convert() would succeed, once calibrated.
  bool convertible() const;
};

/// A table: layer, operation, kernel, bits, accumulator bound, what is folded in, or why it cannot
/// be converted.
std::ostream& operator<<(std::ostream& stream, const Plan& plan);

/// A dry run of convert() that changes nothing: a FakeQuantize without parameters takes the range
/// of the example.
/// Throws: what running the network throws; GraphError if it was not prepared.
Plan plan(Module& net, const Tensor& example);
Plan plan(Module& net, const std::vector<Tensor>& examples);

}  // namespace quantrain::quant
