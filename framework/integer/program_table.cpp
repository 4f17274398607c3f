#include "framework/integer/program_table.hpp"

#include <ostream>

#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"

namespace quantrain::integer {
namespace {

template <class T>
std::string text_of(const T& value) {
  TextStream text;
  text << value;
  return text.str();
}

std::string bits_text(int bits) { return bits == 0 ? "-" : std::to_string(bits); }

}  // namespace

std::vector<StepSummary> summary(const Program& program) {
  std::vector<StepSummary> rows;
  for (const Step& step : program.steps) {
    const Value& output = program.value(step.output);
    const QuantizedProduct* const weights = product(step.operation);
    rows.push_back({.name = output.name,
                    .kernel = std::string(kernel(step.operation)),
                    .output = output.shape,
                    .weight_bits = weights == nullptr ? 0 : weights->weight.bits(),
                    .output_bits = output.params ? output.params->type.bits : 32,
                    .bytes = size_bytes(step.operation),
                    .multiply_adds = multiply_adds(step.operation)});
  }
  return rows;
}

std::ostream& operator<<(std::ostream& stream, const Program& program) {
  TextTable table("lllrrrr");
  table.add({"layer", "kernel", "output", "weights", "bits", "bytes", "multiply-adds"});
  for (const int id : program.inputs) {
    const Value& input = program.value(id);
    table.add({input.name, "input", text_of(input.shape), "-", bits_text(input.params->type.bits)});
  }
  for (const StepSummary& step : summary(program)) {
    table.add({step.name,
               step.kernel,
               text_of(step.output),
               bits_text(step.weight_bits),
               bits_text(step.output_bits),
               grouped(step.bytes),
               grouped(step.multiply_adds)});
  }
  table.add(
      {"total", "", "", "", "", grouped(size_bytes(program)), grouped(multiply_adds(program))});
  return stream << table;
}

}  // namespace quantrain::integer
