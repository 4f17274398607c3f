#pragma once

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// Checks the versions, and the wiring of the graph: each name is made once, by an input, an
/// initializer or a node; each node reads only names that are made before it (so there is no
/// cycle); each output is made. An initializer may have the name of an input, for which it is the
/// default.
/// Throws: DataError naming the path, the node and the name.
void check_model(const Model& model);

}  // namespace quantrain::onnx
