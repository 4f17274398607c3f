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

std::string loop(const char* i, int64_t size, Order order) {
  if (order == Order::kForward) return cat("  for (", i, " = 0; ", i, " < ", size, "; ++", i, ")");
  return cat("  for (", i, " = ", size - 1, "; ", i, " >= 0; --", i, ")");
}

struct Local {
  const Settings& settings;
  int64_t operator()(const integer::QuantizedConv2d& op) const {
    return local_bytes(product_step(op), settings);
  }
  int64_t operator()(const integer::QuantizedLinear& op) const {
    return local_bytes(product_step(op), settings);
  }
  int64_t operator()(const integer::Gather&) const { return 0; }
  int64_t operator()(const integer::QuantizedAdd&) const { return 0; }
  int64_t operator()(const integer::QuantizedAvgPool2d&) const { return 0; }
  int64_t operator()(const integer::QuantizedConcat&) const { return 0; }
  int64_t operator()(const integer::QuantizedLookup&) const { return 0; }
  int64_t operator()(const integer::QuantizedMaxPool2d&) const { return 0; }
  int64_t operator()(const integer::QuantizedMul&) const { return 0; }
  int64_t operator()(const integer::QuantizedSoftmax&) const { return 0; }
  int64_t operator()(const integer::View&) const { return 0; }
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
    std::string parameters, terms;
    StepSource source;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const integer::QuantizedAdd::Operand& operand = op.operands[k];
      offset -= int64_t{operand.zero_x} * operand.m;
      parameters += cat("const uint8_t *x", k, ", ");
      terms += cat("(int64_t)x", k, "[i] * ", operand.m, " + ");
      source.call += cat("X", k, ", ");
    }
    source.text = cat("static void step",
                      id,
                      "(",
                      parameters,
                      "uint8_t *y) {\n",
                      "  int32_t i;\n",
                      loop("i", op.size, order),
                      " {\n",
                      "    int64_t code = ((",
                      terms,
                      "INT64_C(",
                      offset,
                      ")) >> ",
                      op.shift,
                      ") + ",
                      op.y.zero_point,
                      ";\n    code = code < ",
                      op.y.lo,
                      " ? ",
                      op.y.lo,
                      " : code;\n",
                      "    code = code > ",
                      op.y.hi,
                      " ? ",
                      op.y.hi,
                      " : code;\n",
                      "    y[i] = (uint8_t)code;\n  }\n}\n");
    source.call = cat("step", id, "(", source.call, "Y);");
    return source;
  }

  // clamp((((a - zero_a) * (b - zero_b) * m0 + 2^(shift - 1)) >> shift) + zero, low, high)
  StepSource operator()(const integer::QuantizedMul& op) const {
    const bool one = op.rows == 1;
    const std::string at = one ? "c" : cat("i * ", op.channels, " + c");
    StepSource source;
    source.text =
        cat("static void step",
            id,
            "(const uint8_t *a, const uint8_t *b, uint8_t *y) {\n",
            one ? "  int32_t c;\n" : cat("  int32_t i, c;\n", loop("i", op.rows, order), "\n  "),
            loop("c", op.channels, order),
            "\n      y[",
            at,
            "] = requantize_any(((int32_t)a[",
            at,
            "] - ",
            op.zero_a,
            ") * ((int32_t)b[c] - ",
            op.zero_b,
            "), ",
            op.multiplier.m0,
            ", ",
            op.multiplier.shift,
            ", ",
            op.y.zero_point,
            ", ",
            op.y.lo,
            ", ",
            op.y.hi,
            ");\n}\n");
    needs.requantize_any = true;
    source.call = cat("step", id, "(X0, X1, Y);");
    return source;
  }

  StepSource operator()(const integer::QuantizedLookup& op) const {
    const int64_t channels = op.channels();
    const bool one = channels == 1;
    const std::string body =
        one ? cat("  int32_t i;\n", loop("i", op.size, order), " y[i] = table", id, "[x[i]];\n")
            : cat("  int32_t i, c;\n",
                  loop("i", op.size / channels, order),
                  "\n  ",
                  loop("c", channels, order),
                  "\n      y[i * ",
                  channels,
                  " + c] = table",
                  id,
                  "[c * 256 + x[i * ",
                  channels,
                  " + c]];\n");
    StepSource source;
    source.text = table<uint8_t>("uint8_t", cat("table", id), op.table) +
                  cat("static void step", id, "(const uint8_t *x, uint8_t *y) {\n", body, "}\n");
    source.table_bytes = static_cast<int64_t>(op.table.size());
    source.call = cat("step", id, "(X0, Y);");
    return source;
  }

  StepSource operator()(const integer::QuantizedConcat& op) const {
    StepSource source;
    std::string parameters, body;
    int64_t at = 0;
    for (size_t n = 0; n < op.parts.size(); ++n) {
      const integer::QuantizedConcat::Part& part = op.parts[n];
      const integer::CodeTable codes = integer::rescale_table(part.zero_x, part.multiplier, op.y);
      const std::string name = cat("table", id, "_", n);
      source.text += table<uint8_t>("uint8_t", name, codes);
      source.table_bytes += 256;
      parameters += cat("const uint8_t *x", n, ", ");
      body += cat("    for (j = 0; j < ",
                  part.run,
                  "; ++j)\n      y[i * ",
                  op.row_length(),
                  " + ",
                  at,
                  " + j] = ",
                  name,
                  "[x",
                  n,
                  "[i * ",
                  part.run,
                  " + j]];\n");
      at += part.run;
      source.call += cat("X", n, ", ");
    }
    source.text += cat("static void step",
                       id,
                       "(",
                       parameters,
                       "uint8_t *y) {\n  int32_t i, j;\n",
                       "  for (i = 0; i < ",
                       op.rows,
                       "; ++i) {\n",
                       body,
                       "  }\n}\n");
    source.call = cat("step", id, "(", source.call, "Y);");
    return source;
  }

  StepSource operator()(const integer::QuantizedSoftmax& op) const {
    needs.requantize_any = needs.softmax = true;
    const std::string powers = table<int32_t>("uint32_t", cat("powers", id), op.powers);
    return {.text = powers + fill(core("softmax_step"),
                                  {{"ID", id},
                                   {"ROWS", cat(op.rows)},
                                   {"CLASSES", cat(op.classes)},
                                   {"M0", cat(op.multiplier.m0)},
                                   {"SHIFT", cat(op.multiplier.shift)},
                                   {"ZERO", cat(op.y.zero_point)},
                                   {"LOW", cat(op.y.lo)},
                                   {"HIGH", cat(op.y.hi)}}),
            .call = cat("step", id, "(X0, Y);"),
            .table_bytes = static_cast<int64_t>(op.powers.size() * sizeof(uint32_t))};
  }

  StepSource operator()(const integer::View&) const { return {}; }
};

}  // namespace

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
