#include "quant/lowering/convert.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "framework/io/metadata.hpp"
#include "layers/dry_run.hpp"
#include "layers/network/network.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::quant {
namespace {

/// outputs: if not null, gets what the network computes from the examples.
Lowered lower_network(const char* where,
                      Module& net,
                      const std::vector<Tensor>& examples,
                      std::vector<Tensor>* outputs = nullptr) {
  const DefaultRounding rounding;
  check_examples(where, examples);
  if (Plugged(net).empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  std::vector<Tensor> inputs;
  for (const Tensor& example : examples) inputs.push_back(example.detach());
  const DeployedMode deployed(net);
  const Graph graph = record_graph(net, inputs);
  if (outputs != nullptr) *outputs = graph.outputs();
  return lower(graph, inputs);
}

// An operand that loses so many bits is worth a line. Of 8 bits, it keeps 5.
constexpr double kManyBits = 3.0;
// Of many channels with few codes, the plan names those with the fewest.
constexpr size_t kFewChannels = 5;

// What a Network says about itself stays in its metadata.
void describe(const Network& network, integer::Program& program) {
  program.metadata = network.metadata();
  if (!network.classes().empty()) program.metadata["classes"] = metadata_text(network.classes());
  if (network.inputs().size() == 1 && !network.inputs()[0].feature_names.empty())
    program.metadata["features"] = metadata_text(network.inputs()[0].feature_names);
}

std::string bits_text(int bits, int last) {
  if (bits == 0) return "-";
  return std::to_string(bits) + (last == 0 ? "" : " -> " + std::to_string(last));
}

// The slots of a layer know what its graph lacks: in deployed mode a folded batch norm leaves no
// node, and codes do not tell whether their bits will fall.
void add_slots(const NamedModule& layer, std::vector<PlanRow>& rows) {
  const Slots& slots = layer.module->slots();
  const auto* weight = dynamic_cast<const WeightQuantizer*>(slots.weight.get());
  const auto* output = dynamic_cast<const FakeQuantize*>(slots.output.get());
  if (output == nullptr) output = dynamic_cast<const FakeQuantize*>(layer.module);
  for (PlanRow& row : rows) {
    if (weight != nullptr && row.name == layer.name) {
      if (const auto& folding = weight->folding())
        row.folded = folding->path + (row.folded.empty() ? "" : ", ") + row.folded;
      if (weight->lowers_bits() && row.weight_bits > weight->config().bits)
        row.last_weight_bits = weight->config().bits;
    }
    if (output != nullptr && row.closed_by == layer.name && output->lowers_bits() &&
        row.output_bits > output->config().type.bits) {
      row.last_output_bits = output->config().type.bits;
    }
  }
}

}  // namespace

IntegerModel convert(Module& net, const Tensor& example) {
  return convert(net, std::vector<Tensor>{example});
}

IntegerModel convert(Module& net, const std::vector<Tensor>& examples) {
  Lowered lowered = lower_network("convert", net, examples);
  if (lowered.error != nullptr) std::rethrow_exception(lowered.error);
  if (const auto* network = dynamic_cast<const Network*>(&net)) describe(*network, lowered.program);
  return IntegerModel(std::move(lowered.program));
}

Plan plan(Module& net, const Tensor& example) { return plan(net, std::vector<Tensor>{example}); }

Plan plan(Module& net, const std::vector<Tensor>& examples) {
  const DryRun dry_run;
  std::vector<Tensor> outputs;
  Lowered lowered = lower_network("plan", net, examples, &outputs);
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
  for (size_t k = 0; k < lowered.program.outputs.size(); ++k) {
    const int id = lowered.program.outputs[k];
    const int output = without_views(lowered.program, id);
    for (PlanRow& row : lowered.rows) {
      if (row.name == lowered.program.value(output).name && row.reason.empty())
        row.few_codes = few_output_codes(lowered.program, id, outputs[k]);
    }
  }
  for (const NamedModule& entry : net.named_modules()) add_slots(entry, lowered.rows);
  return {std::move(lowered.rows)};
}

std::vector<NoIntegerForm> without_integer_form(Module& net, const std::vector<Tensor>& inputs) {
  const DryRun dry_run;
  try {
    return lower_network("prepare", net, inputs).refused;
  } catch (const QuantError&) {
    return {};  // a value of the examples has no code; other ranges may follow
  } catch (const DataError&) {
    return {};  // a value of the examples is not finite
  }
}

bool Plan::convertible() const {
  return std::all_of(
      rows.begin(), rows.end(), [](const PlanRow& row) { return row.reason.empty(); });
}

std::ostream& operator<<(std::ostream& stream, const Plan& plan) {
  TextTable table("lllrrrl");
  table.add({"layer", "operation", "kernel", "weights", "output", "accumulator <=", "fused"});
  for (const PlanRow& row : plan.rows) {
    if (!row.reason.empty()) {
      table.add({row.name, row.operation, "cannot be converted: " + row.reason});
      continue;
    }
    table.add({row.name,
               row.operation,
               row.kernel,
               bits_text(row.weight_bits, row.last_weight_bits),
               bits_text(row.output_bits, row.last_output_bits),
               row.accumulator_bound == 0 ? "-" : grouped(row.accumulator_bound),
               row.folded});
  }
  stream << table;
  for (const PlanRow& row : plan.rows) {
    for (const PlanOperand& operand : row.operands) {
      if (operand.lost_bits < kManyBits) continue;
      TextStream line;
      line << std::fixed << std::setprecision(1) << row.name << ": operand " << operand.name
           << " loses " << operand.lost_bits << " of its " << operand.bits
           << " bits, because the output's scale is " << std::setprecision(0)
           << std::exp2(operand.lost_bits) << " times its own\n";
      stream << line.str();
    }
    std::vector<ChannelCodes> worst = row.few_codes;
    std::stable_sort(worst.begin(), worst.end(), [](const ChannelCodes& a, const ChannelCodes& b) {
      return a.codes < b.codes;
    });
    if (worst.size() > kFewChannels) worst.resize(kFewChannels);
    for (const ChannelCodes& channel : worst) {
      TextStream line;
      line << std::fixed << std::setprecision(channel.codes < 1.0 ? 2 : 0) << row.name
           << ": output channel " << channel.channel << " gets "
           << (channel.samples > 0 ? "" : "about ") << channel.codes << " of the " << channel.of
           << " codes";
      if (channel.samples > 0) line << " in " << channel.samples << " samples";
      line << ", because all channels share one scale: make it an output of its own, train on "
              "targets of similar size, or keep the integers of 32 bits (output_bits)\n";
      stream << line.str();
    }
    if (row.few_codes.size() > worst.size()) {
      stream << row.name << ": " << row.few_codes.size() - worst.size()
             << " more channels get few codes\n";
    }
  }
  return stream;
}

}  // namespace quantrain::quant
