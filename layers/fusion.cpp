#include "layers/fusion.hpp"

#include <utility>

#include "layers/activation.hpp"

namespace quantrain {

bool run_fused(Module& layer, Module& next, Tensor& x) {
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

}  // namespace quantrain
