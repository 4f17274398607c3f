#include "quant/methods/gradual_bits.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

constexpr const char* kLowerBits = "lower_bits";

void check_lowers(const Module& net, const Plugged& plugged) {
  if (plugged.empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  const auto lowers = [](const auto* slot) { return slot->lowers_bits(); };
  const bool any = std::any_of(plugged.weights.begin(), plugged.weights.end(), lowers) ||
                   std::any_of(plugged.activations.begin(), plugged.activations.end(), lowers);
  if (!any) {
    throw QuantError(kLowerBits,
                     "no weights or activations of the network have first_bits, except where "
                     "parameters are given: set them in the QConfig, such as "
                     "config.model.weight.first_bits = 8");
  }
}

}  // namespace

void lower_bits(Module& net, int64_t by) {
  const Plugged plugged(net);
  check_lowers(net, plugged);
  for (const WeightQuantizer* slot : plugged.weights) slot->lowered_bits(by);  // throws if frozen
  for (const FakeQuantize* slot : plugged.activations) slot->lowered_bits(by);
  for (WeightQuantizer* slot : plugged.weights) slot->lower_bits(by);
  for (FakeQuantize* slot : plugged.activations) slot->lower_bits(by);
}

std::function<void(int64_t)> gradual_bits(Module& net, int64_t epochs) {
  if (epochs < 1) throw DataError("gradual_bits", "epochs is ", epochs, ", expected at least 1");
  check_lowers(net, Plugged(net));
  return [&net, epochs](int64_t epoch) { lower_bits(net, epoch / epochs); };
}

}  // namespace quantrain::quant
