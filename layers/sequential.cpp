#include "layers/sequential.hpp"

#include <utility>

#include "layers/activation.hpp"

namespace quantrain {
namespace {

// Runs a layer and the ReLU or ReLU6 after it on x as one operation. In a prepared network, the
// layer's body slot does this, perhaps with the output slot of the activation. Returns false if the
// two layers must run one after the other.
bool fused(Module& layer, Module& next, Tensor& x) {
  const Activation activation = activation_of(next);
  const Slots& own = layer.slots();
  const Slots& following = next.slots();
  if (activation == Activation::kNone || !x.defined() || !own.inputs.empty() || own.output ||
      !following.inputs.empty() || following.body) {
    return false;
  }
  Module* output = following.output.get();
  {
    const Scope scope(layer.name());
    if (!(own.body ? *own.body : layer).fuse(x, activation, output)) return false;
  }
  const Scope scope(next.name());
  if (output != nullptr) x = (*output)(std::move(x));
  return true;
}

}  // namespace

Tensor Sequential::take_forward(Tensor x) {
  for (size_t i = 0; i < children().size(); ++i) {
    Module& layer = *children()[i];
    if (i + 1 < children().size() && fused(layer, *children()[i + 1], x))
      ++i;
    else
      x = layer(std::move(x));
  }
  return x;
}

}  // namespace quantrain
