#include "quant/export/c99/steps.hpp"

#include "quant/export/c99/moves.hpp"
#include "quant/export/c99/products.hpp"
#include "quant/export/c99/text.hpp"
#include "quant/export/c99/windows.hpp"

// The list of operations that have a C form. If one is missing here, this file does
// not compile.
namespace quantrain::c99 {
namespace {

using integer::Operation;

// The parameters of a step with n inputs: "const uint8_t *x0, const uint8_t *x1".
std::string operands(size_t n) {
  std::string text;
  for (size_t k = 0; k < n; ++k) text += cat(k > 0 ? ", " : "", "const uint8_t *x", k);
  return text;
}

struct Local {
  const Settings& settings;
  int64_t operator()(const integer::QuantizedConv2d& op) const {
    return local_bytes(product_step(op), settings);
  }
  int64_t operator()(const integer::QuantizedLinear& op) const {
    return local_bytes(product_step(op), settings);
  }
  int64_t operator()(const auto&) const { return 0; }  // only products have local arrays
};

struct Source {
  const std::string& id;
  Order order;
  const Settings& settings;
  Needs& needs;

  StepSource operator()(const integer::QuantizedConv2d& op) const {
    return step_source(product_step(op), id, order, settings, needs);
  }
  StepSource operator()(const integer::QuantizedLinear& op) const {
    return step_source(product_step(op), id, order, settings, needs);
  }
  StepSource operator()(const integer::Gather& op) const { return step_source(op, id); }
  StepSource operator()(const integer::QuantizedMaxPool2d& op) const {
    return step_source(op, id, order);
  }
  StepSource operator()(const integer::QuantizedAvgPool2d& op) const {
    return step_source(op, id, order, needs);
  }

  // clamp(((sum of (x_k - zero_k) * m_k + 2^(shift - 1)) >> shift) + zero, low, high)
  StepSource operator()(const integer::QuantizedAdd& op) const {
    int64_t offset = int64_t{1} << (op.shift - 1);
    std::string terms;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const integer::QuantizedAdd::Operand& operand = op.operands[k];
      offset -= int64_t{operand.zero_x} * operand.m;
      terms += fill("ADD_TERMS", {{"K", k}, {"M", operand.m}});
    }
    return {.text = fill("add_step",
                         {{"ID", id},
                          {"OPERANDS", operands(op.operands.size())},
                          {"EACH_I", loop("i", op.size, order)},
                          {"ADD_TERMS", terms},
                          {"OFFSET", offset},
                          {"SHIFT", op.shift},
                          {"ZERO", op.y.zero_point},
                          {"LOW", op.y.lo},
                          {"HIGH", op.y.hi}})};
  }

  // clamp((((a - zero_a) * (b - zero_b) * m0 + 2^(shift - 1)) >> shift) + zero, low, high)
  StepSource operator()(const integer::QuantizedMul& op) const {
    needs.requantize_any = true;
    return {.text = fill("mul_step",
                         {{"ID", id},
                          {"ONE_ROW", op.rows == 1},
                          {"EACH_I", loop("i", op.rows, order)},
                          {"EACH_C", loop("c", op.channels, order)},
                          {"CHANNELS", op.channels},
                          {"ZERO_A", op.zero_a},
                          {"ZERO_B", op.zero_b},
                          {"M0", op.multiplier.m0},
                          {"SHIFT", op.multiplier.shift},
                          {"ZERO", op.y.zero_point},
                          {"LOW", op.y.lo},
                          {"HIGH", op.y.hi}})};
  }

  StepSource operator()(const integer::QuantizedLookup& op) const {
    const int64_t channels = op.channels();
    return {.text = table<uint8_t>("uint8_t", cat("table", id), op.table) +
                    fill("lookup_step",
                         {{"ID", id},
                          {"ONE_TABLE", channels == 1},
                          {"EACH_I", loop("i", op.size / channels, order)},
                          {"EACH_C", loop("c", channels, order)},
                          {"CHANNELS", channels}}),
            .table_bytes = static_cast<int64_t>(op.table.size())};
  }

  StepSource operator()(const integer::QuantizedConcat& op) const {
    StepSource source;
    std::string parts;
    int64_t at = 0;
    for (size_t n = 0; n < op.parts.size(); ++n) {
      const integer::QuantizedConcat::Part& part = op.parts[n];
      const integer::CodeTable codes = integer::rescale_table(part.zero_x, part.multiplier, op.y);
      source.text += table<uint8_t>("uint8_t", cat("table", id, "_", n), codes);
      source.table_bytes += 256;
      parts +=
          fill("CONCAT_PARTS",
               {{"ID", id}, {"N", n}, {"RUN", part.run}, {"ROW", op.row_length()}, {"AT", at}});
      at += part.run;
    }
    source.text += fill("concat_step",
                        {{"ID", id},
                         {"OPERANDS", operands(op.parts.size())},
                         {"ROWS", op.rows},
                         {"CONCAT_PARTS", parts}});
    return source;
  }

  StepSource operator()(const integer::QuantizedSoftmax& op) const {
    needs.requantize_any = needs.softmax = true;
    return {.text = table<int32_t>("uint32_t", cat("powers", id), op.powers) +
                    fill("softmax_step",
                         {{"ID", id},
                          {"ROWS", op.rows},
                          {"CLASSES", op.classes},
                          {"M0", op.multiplier.m0},
                          {"SHIFT", op.multiplier.shift},
                          {"ZERO", op.y.zero_point},
                          {"LOW", op.y.lo},
                          {"HIGH", op.y.hi}}),
            .table_bytes = static_cast<int64_t>(op.powers.size() * sizeof(uint32_t))};
  }

  StepSource operator()(const integer::View&) const { return {}; }
};

}  // namespace

std::string loop(std::string_view i, int64_t size, Order order, int64_t stride) {
  const bool forward = order == Order::kForward;
  const int64_t last = (size - 1) / stride * stride;
  const std::string next =
      stride == 1 ? cat(forward ? "++" : "--", i) : cat(i, forward ? " += " : " -= ", stride);
  return forward ? cat(i, " = 0; ", i, " < ", size, "; ", next)
                 : cat(i, " = ", last, "; ", i, " >= 0; ", next);
}

int64_t local_bytes(const Operation& op, const Settings& settings) {
  return std::visit(Local{settings}, op);
}

bool has_any_shift(const Operation& op) {
  const integer::QuantizedProduct* const product = integer::product(op);
  return product != nullptr && any_shift(*product);
}

StepSource step_source(const Operation& op,
                       const std::string& id,
                       Order order,
                       const Settings& settings,
                       Needs& needs) {
  return std::visit(Source{id, order, settings, needs}, op);
}

}  // namespace quantrain::c99
