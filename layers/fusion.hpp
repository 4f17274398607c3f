#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// For callers that know that `next` alone reads the result of `layer`: runs both on x as one
/// operation, if `next` is a ReLU or ReLU6 that `layer` can fuse (Module::fuse). In a prepared
/// network, the layer's body slot does this, perhaps with the output slot of the activation.
/// Returns false, and leaves x as it is, if the two must run one after the other. The names of both
/// layers extend the enclosing Scope.
bool run_fused(Module& layer, Module& next, Tensor& x);

}  // namespace quantrain
