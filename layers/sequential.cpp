#include "layers/sequential.hpp"

#include <typeinfo>
#include <utility>

#include "layers/activation.hpp"
#include "layers/batch_norm.hpp"

namespace quantrain {
namespace {

bool has_slots(const Module& layer) {
  const Slots& slots = layer.slots();
  return !slots.inputs.empty() || slots.weight || slots.body || slots.output;
}

BatchNorm* batch_norm_of(Module& layer) {
  const bool exact = typeid(layer) == typeid(BatchNorm1d) || typeid(layer) == typeid(BatchNorm2d);
  return exact ? static_cast<BatchNorm*>(&layer) : nullptr;
}

}  // namespace

// A batch norm and the ReLU or ReLU6 after it are one operation, except in a recording, which shows
// each layer's own. In a prepared network, the slots run instead.
Tensor Sequential::take_forward(Tensor y) {
  for (size_t i = 0; i < children().size(); ++i) {
    Module& layer = *children()[i];
    BatchNorm* const norm = i + 1 < children().size() ? batch_norm_of(layer) : nullptr;
    const Activation activation =
        norm == nullptr ? Activation::kNone : activation_of(*children()[i + 1]);
    const bool fuses = activation != Activation::kNone && y.defined() && !keeps_values() &&
                       !has_slots(layer) && !has_slots(*children()[i + 1]);
    if (fuses) {
      const Scope scope(layer.name());
      y = norm->normalize(std::move(y), activation);
      ++i;
    } else {
      y = layer(std::move(y));
    }
  }
  return y;
}

}  // namespace quantrain
