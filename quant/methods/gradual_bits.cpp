#include "quant/methods/gradual_bits.hpp"

#include <algorithm>
#include <vector>

#include "framework/core/error.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

constexpr const char* kLowerBits = "lower_bits";

void check_prepared(const Module& net, const Plugged& plugged) {
  if (plugged.empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
}

void check_lowers(const Module& net, const Plugged& plugged) {
  check_prepared(net, plugged);
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

/// By how many bits the slots fall at most.
struct Falls {
  int64_t all = 0;   ///< from their first bits
  int64_t left = 0;  ///< from those that they have
};

Falls falls_of(const Plugged& plugged) {
  Falls falls;
  const auto add = [&](int first, int now, int last) {
    falls.all = std::max<int64_t>(falls.all, first - last);
    falls.left = std::max<int64_t>(falls.left, now - last);
  };
  for (const WeightQuantizer* slot : plugged.weights) {
    if (slot->lowers_bits()) add(slot->config().first_bits, slot->bits(), slot->config().bits);
  }
  for (const FakeQuantize* slot : plugged.activations) {
    if (slot->lowers_bits())
      add(slot->config().first_bits, slot->code_type().bits, slot->config().type.bits);
  }
  return falls;
}

}  // namespace

void lower_bits(Module& net, int64_t by) {
  const Plugged plugged(net);
  check_lowers(net, plugged);
  std::vector<std::function<void()>> prepared;
  for (WeightQuantizer* slot : plugged.weights) prepared.push_back(slot->prepared_lower_bits(by));
  for (FakeQuantize* slot : plugged.activations) prepared.push_back(slot->prepared_lower_bits(by));
  for (const std::function<void()>& lower : prepared) lower();
}

std::function<void(int64_t)> gradual_bits(Module& net, int64_t epochs) {
  if (epochs < 1) throw DataError("gradual_bits", "epochs is ", epochs, ", expected at least 1");
  const Plugged plugged(net);
  check_lowers(net, plugged);
  const Falls falls = falls_of(plugged);
  const int64_t fallen = falls.all - falls.left;
  return [&net, epochs, fallen](int64_t epoch) { lower_bits(net, fallen + epoch / epochs); };
}

int64_t bits_to_fall(Module& net) {
  const Plugged plugged(net);
  check_prepared(net, plugged);
  return falls_of(plugged).left;
}

}  // namespace quantrain::quant
