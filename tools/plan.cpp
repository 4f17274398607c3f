// quantrain plan: what becomes of each layer on a device, or every reason why not.
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/text_stream.hpp"
#include "quant/export/c99/export_c99.hpp"
#include "quant/lowering/convert.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"
#include "tools/words.hpp"

namespace quantrain::tools {
namespace {

struct PlanOptions {
  ModelFlags model;
  BitsFlags bits;
  Budget budget;
  Common common;
};

void add_plan(const quant::Plan& plan, Report& report) {
  std::vector<std::vector<Cell>> rows;
  for (const quant::PlanRow& row : plan.rows) {
    rows.push_back({row.name,
                    row.operation,
                    row.kernel,
                    int64_t{row.weight_bits},
                    int64_t{row.output_bits},
                    row.accumulator_bound,
                    row.folded,
                    row.reason});
  }
  TextStream text;
  text << plan;
  report.table("layers",
               {"layer",
                "operation",
                "kernel",
                "weight_bits",
                "output_bits",
                "accumulator_bound",
                "folded",
                "reason"},
               std::move(rows),
               std::move(text).str());
  report.note(
      "weights, output: bits of their codes (32: the sums themselves). accumulator <=: the largest "
      "sum that any input gives, below 2^31. fused: layers that this one computes, too.");
  std::vector<std::vector<Cell>> few;
  for (const quant::PlanRow& row : plan.rows) {
    for (const quant::ChannelCodes& channel : row.few_codes)
      few.push_back(
          {row.name, int64_t{channel.channel}, Rounded{channel.codes, 2}, int64_t{channel.of}});
  }
  if (!few.empty())  // the plan's text names the worst
    report.table("few_codes", {"layer", ">channel", ">codes", ">of"}, std::move(few), "");
}

/// Every reason why a network cannot be prepared: the lines of the message.
void add_reasons(std::string_view message, Report& report) {
  std::vector<std::vector<Cell>> reasons;
  const std::vector<std::string> lines = parts(in_own_words(message), '\n');
  for (size_t i = lines.size() > 1 ? 1 : 0; i < lines.size(); ++i) {
    const size_t start = lines[i].find_first_not_of(' ');
    // Below the heading, reasons are indented; what follows them is advice.
    if (start == std::string::npos || (lines.size() > 1 && start == 0)) continue;
    reasons.push_back({lines[i].substr(start)});
  }
  report.fact("convertible", false);
  report.table("reasons", {"reason"}, std::move(reasons));
}

/// Whether an error says that a network cannot be converted with such bits. Others say that the
/// call or its configuration is wrong.
bool is_of_network(const Error& error) {
  if (dynamic_cast<const GraphError*>(&error) != nullptr) return true;
  return dynamic_cast<const QuantError*>(&error) != nullptr &&
         !std::string_view(error.what()).starts_with("[QConfig");
}

void print_plan(const PlanOptions& options) {
  options.common.apply();
  options.budget.check_call();
  const quant::QConfig config = options.bits.read();
  Model model = open_model(options.model);
  if (model.kind != Model::Kind::kFloat && options.bits.given())
    throw WrongCall("--bits", kOnlyForFloats, "; ", model.path, " is ", model.description());
  Report report;
  if (model.kind == Model::Kind::kInteger) {
    const C99Sources sources = export_c99(model.integer->program());
    report.note(sources.plan);
    add_size({sources.scratch_bytes, sources.table_bytes}, report);
    add_kept(*model.integer, report);
    print(report, options.common.json, options.common.all);
    return options.budget.check(sources.scratch_bytes, sources.table_bytes);
  }
  const std::vector<Tensor> examples = examples_of(model, Examples::kRandom);
  std::optional<Network> prepared;
  try {
    prepared = model.kind == Model::Kind::kFloat || model.needs_data ? prepared_copy(model, config)
                                                                     : std::move(*model.network);
  } catch (const Error& error) {
    if (is_of_network(error)) {
      add_reasons(error.what(), report);
      print(report, options.common.json, options.common.all);
    }
    throw;
  }
  Network& own = *prepared;
  const quant::Plan plan = quant::plan(own, examples);
  add_plan(plan, report);
  report.fact("convertible", plan.convertible());
  if (!plan.convertible()) {
    print(report, options.common.json, options.common.all);
    throw GraphError(model.path, "some layers have no integer form: see the column of reasons");
  }
  const IntegerModel converted = quant::convert(own, examples);
  const DeviceSize size = device_size(converted);
  add_size(size, report);
  add_kept(converted, report);
  print(report, options.common.json, options.common.all);
  options.budget.check(size.ram, size.flash);
}

}  // namespace

Run plan(CLI::App& line) {
  const auto options = std::make_shared<PlanOptions>();
  options->model.declare(line);
  options->bits.declare(line);
  options->budget.declare(line);
  options->common.declare(line);
  example(line, "  quantrain plan network.onnx --bits 4 --ram 32k --flash 256k");
  return [options] { print_plan(*options); };
}

}  // namespace quantrain::tools
