#include "quant/lowering/convert.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>

#include "framework/core/error.hpp"
#include "layers/dry_run.hpp"
#include "quant/training/prepare.hpp"
#include "quant/training/scopes.hpp"

namespace quantrain::quant {
namespace {

Lowered lower_network(const char* where, Module& net, const std::vector<Tensor>& examples) {
  check_examples(where, examples);
  if (Plugged(net).empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  std::vector<Tensor> inputs;
  for (const Tensor& example : examples) inputs.push_back(example.detach());
  const DeployedMode deployed(net);
  return lower(record_graph(net, inputs), inputs);
}

std::string bits_text(int bits) { return bits == 0 ? "-" : std::to_string(bits); }

}  // namespace

IntegerModel convert(Module& net, const Tensor& example) {
  return convert(net, std::vector<Tensor>{example});
}

IntegerModel convert(Module& net, const std::vector<Tensor>& examples) {
  Lowered lowered = lower_network("convert", net, examples);
  if (lowered.error != nullptr) std::rethrow_exception(lowered.error);
  return IntegerModel(std::move(lowered.program));
}

Plan plan(Module& net, const Tensor& example) { return plan(net, std::vector<Tensor>{example}); }

Plan plan(Module& net, const std::vector<Tensor>& examples) {
  const DryRun dry_run;
  Lowered lowered = lower_network("plan", net, examples);
  if (lowered.error != nullptr &&
      std::none_of(lowered.rows.begin(), lowered.rows.end(), [](const PlanRow& row) {
        return !row.reason.empty();
      })) {
    try {
      std::rethrow_exception(lowered.error);
    } catch (const Error& error) {
      lowered.rows.push_back({.name = "output", .operation = "output", .reason = error.what()});
    }
  }
  // In deployed mode a folded batch norm leaves no node in the graph.
  for (const NamedModule& entry : net.named_modules()) {
    const auto* weight = dynamic_cast<const WeightQuantizer*>(entry.module->slots().weight.get());
    if (weight == nullptr || weight->folding() == nullptr) continue;
    for (PlanRow& row : lowered.rows) {
      if (row.name == entry.name)
        row.folded = weight->folding()->path + (row.folded.empty() ? "" : ", ") + row.folded;
    }
  }
  return {std::move(lowered.rows)};
}

bool Plan::convertible() const {
  return std::all_of(
      rows.begin(), rows.end(), [](const PlanRow& row) { return row.reason.empty(); });
}

void Plan::print() const { print(std::cout); }

void Plan::print(std::ostream& stream) const {
  size_t name = 5;
  size_t operation = 9;
  for (const PlanRow& row : rows) {
    name = std::max(name, row.name.size());
    operation = std::max(operation, row.operation.size());
  }
  const auto column = [&](size_t width) -> std::ostream& {
    return stream << std::left << std::setw(static_cast<int>(width) + 2);
  };
  column(name) << "layer";
  column(operation) << "operation";
  column(15) << "kernel";
  column(7) << "weights";
  column(6) << "output";
  column(13) << "accumulator <=";
  stream << "  fused\n";
  for (const PlanRow& row : rows) {
    column(name) << row.name;
    column(operation) << row.operation;
    if (!row.reason.empty()) {
      stream << "cannot be converted: " << row.reason << '\n';
      continue;
    }
    column(15) << row.kernel;
    column(7) << bits_text(row.weight_bits);
    column(6) << bits_text(row.output_bits);
    column(13) << (row.accumulator_bound == 0 ? "-" : std::to_string(row.accumulator_bound));
    stream << "   " << row.folded << '\n';
  }
}

}  // namespace quantrain::quant
