#include "quant/analysis/bit_costs.hpp"

#include "framework/integer/constant.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/integer/operation.hpp"

namespace quantrain::quant {
namespace {

double weighted(int64_t multiply_adds, int weight_bits, int input_bits) {
  return static_cast<double>(multiply_adds) * weight_bits * input_bits / 64.0;
}

}  // namespace

BitCosts costs_of(const integer::Program& program) { return CostModel(program).with({}); }

CostModel::CostModel(integer::Program program)
    : program_(std::move(program)),
      own_{.bytes = integer::size_bytes(program_), .ram = integer::memory(program_, 1)},
      source_(program_.values.size(), -1) {
  // A view, a pool of maxima and other moves have the codes of what they read.
  for (const integer::Step& step : program_.steps) {
    if (step.inputs.size() != 1) continue;
    const integer::Value& from = program_.value(step.inputs[0]);
    const integer::Value& to = program_.value(step.output);
    if (to.params && from.params && *to.params == *from.params)
      source_[static_cast<size_t>(step.output)] = step.inputs[0];
  }
}

int CostModel::bits_of(int value, const BitsOfParts& bits) const {
  const integer::Value& is = program_.value(value);
  if (const auto own = bits.find({is.name, LayerPart::kOutput}); own != bits.end())
    return own->second;
  const int source = source_[static_cast<size_t>(value)];
  if (source >= 0) return bits_of(source, bits);
  return is.params ? is.params->type.bits : 32;
}

BitCosts CostModel::with(const BitsOfParts& bits) const {
  BitCosts costs = own_;
  for (const integer::Step& step : program_.steps) {
    const integer::QuantizedProduct* const product = integer::product(step.operation);
    if (product == nullptr) continue;
    int weight_bits = product->weight.bits();
    const auto own = bits.find({program_.value(step.output).name, LayerPart::kWeights});
    if (own != bits.end()) {
      const auto weights = static_cast<int64_t>(product->weight.size());
      costs.bytes +=
          integer::packed_bytes(weights, own->second) - integer::packed_bytes(weights, weight_bits);
      weight_bits = own->second;
    }
    costs.multiply_adds += weighted(
        integer::multiply_adds(step.operation), weight_bits, bits_of(step.inputs[0], bits));
  }
  return costs;
}

}  // namespace quantrain::quant
