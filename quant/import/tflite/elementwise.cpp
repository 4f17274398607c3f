#include <algorithm>
#include <cmath>

#include "framework/core/rounding.hpp"
#include "quant/import/tflite/windows.hpp"

// Functions of one code, ADD, MUL, CONCATENATION, QUANTIZE and DEQUANTIZE.
namespace quantrain::tflite {
namespace {

using integer::CodeValues;

/// Emits the tables of functions of one code, one for all channels or one for each of them.
/// docs/quantization.md (18)
void emit_tables(Lowering& l,
                 int64_t input,
                 const std::vector<CodeValues>& values,
                 Fused activation) {
  l.spend(static_cast<int64_t>(values.size() * (sizeof(CodeValues) + sizeof(integer::CodeTable))));
  auto op = integer::QuantizedLookup::function(elements_of(l.output_dims()),
                                               values,
                                               l.input_params(input),
                                               l.output_params(),
                                               Activation::kNone,
                                               l.output().name);
  const StoredOutput y = l.stored(activation);
  for (uint8_t& code : op.table) code = static_cast<uint8_t>(std::clamp<int32_t>(code, y.lo, y.hi));
  l.emit(std::move(op), {l.value(input)});
}

/// The values of a constant operand of an operation on inputs 0 and 1: one for all elements of the
/// other operand, or one for each of its channels. `other` is the position of the other operand.
std::vector<double> constant_operand(Lowering& l, int64_t* other) {
  const int64_t at = l.is_constant(0) ? 0 : 1;
  *other = 1 - at;
  if (l.is_constant(*other)) throw Refusal{"of two constants"};
  const Dims x = l.input_dims(*other);
  const Dims c = l.input_dims(at);
  const int64_t count = elements_of(c);
  const bool fits = count == 1 || (!x.empty() && c.back() == count && x.back() == count);
  if (!fits || l.input(at).data.size() != count)
    throw Refusal{"with a constant that is neither one number nor one for each channel"};
  const QParams params = l.input_params(at);
  l.spend(count * int64_t{sizeof(CodeValues) + 16});
  std::vector<double> values;
  for (const int32_t code : l.constant_codes(at)) values.push_back(code_value(code, params));
  return values;
}

template <class F>
void emit_with_constant(Lowering& l, const F& f) {
  int64_t other = 0;
  std::vector<CodeValues> tables;
  const std::vector<double> constants = constant_operand(l, &other);
  for (const double c : constants)
    tables.push_back(
        integer::code_values([&](double v) { return f(v, c); }, l.input_params(other)));
  emit_tables(l, other, tables, l.fused(0));
}

bool has_constant(const Lowering& l) { return l.is_constant(0) || l.is_constant(1); }

}  // namespace

void lower_add(Lowering& l) {
  if (has_constant(l)) return emit_with_constant(l, [](double v, double c) { return v + c; });
  if (l.input_dims(0) != l.input_dims(1)) throw Refusal{"of operands with different shapes"};
  auto op = integer::QuantizedAdd::make(elements_of(l.input_dims(0)),
                                        {l.input_params(0), l.input_params(1)},
                                        l.output_params(),
                                        Activation::kNone);
  op.y = l.stored(l.fused(0));
  l.emit(std::move(op), {l.value(0), l.value(1)});
}

void lower_mul(Lowering& l) {
  if (has_constant(l)) return emit_with_constant(l, [](double v, double c) { return v * c; });
  // The operand that is one factor for each channel comes second.
  const int64_t large = elements_of(l.input_dims(0)) >= elements_of(l.input_dims(1)) ? 0 : 1;
  const Dims a = l.input_dims(large), b = l.input_dims(1 - large);
  const int64_t channels = elements_of(b);
  if (a != b && (a.empty() || b.empty() || a.back() != channels || b.back() != channels))
    throw Refusal{"of operands that are neither of the same shape nor a factor for each channel"};
  auto op = integer::QuantizedMul::make(elements_of(a) / channels,
                                        channels,
                                        l.input_params(large),
                                        l.input_params(1 - large),
                                        l.output_params(),
                                        Activation::kNone);
  op.y = l.stored(l.fused(0));
  l.emit(op, {l.value(large), l.value(1 - large)});
}

void lower_concatenation(Lowering& l) {
  const Dims y = l.output_dims();
  const auto axis = static_cast<size_t>(l.axis(l.options().get<int32_t>(0, 0), y));
  int64_t rows = 1, run = 1;
  for (size_t k = 0; k < axis; ++k) rows *= y[k];
  for (size_t k = axis + 1; k < y.size(); ++k) run *= y[k];
  std::vector<int64_t> runs;
  std::vector<QParams> params;
  std::vector<int> values;
  l.spend(l.inputs() * int64_t{sizeof(QParams) + 64});
  for (int64_t i = 0; i < l.inputs(); ++i) {
    Dims x = l.input_dims(i);
    if (x.size() != y.size()) throw Refusal{"of operands with different numbers of axes"};
    runs.push_back(x[axis] * run);
    x[axis] = y[axis];
    if (x != y) throw Refusal{"of operands whose other extents differ"};
    params.push_back(l.input_params(i));
  }
  auto op =
      integer::QuantizedConcat::make(rows, runs, params, l.output_params(), Activation::kNone);
  op.y = l.stored(l.fused(1));
  for (int64_t i = 0; i < l.inputs(); ++i) values.push_back(l.value(i));
  l.emit(std::move(op), std::move(values));
}

void lower_function(Lowering& l) {
  const float alpha = l.options().get<float>(0, 0.0f);
  const auto value = [&](double v) {
    switch (l.operation().kind) {
      case Kind::kLogistic: return 1.0 / (1.0 + std::exp(-v));
      case Kind::kTanh: return std::tanh(v);
      case Kind::kHardSwish: return v * std::clamp(v + 3.0, 0.0, 6.0) / 6.0;
      default: return v >= 0.0 ? v : v * double{alpha};  // LEAKY_RELU
    }
  };
  emit_tables(l, 0, {integer::code_values(value, l.input_params(0))}, Fused::kNone);
}

void lower_relu(Lowering& l) {
  const Kind kind = l.operation().kind;
  l.input_params(0);
  const Fused activation = kind == Kind::kRelu        ? Fused::kRelu
                           : kind == Kind::kReluN1To1 ? Fused::kReluN1To1
                           : kind == Kind::kRelu6     ? Fused::kRelu6
                                                      : Fused::kRelu0To1;
  const StoredOutput y = l.stored(activation);
  l.emit_rescaled(l.value(0), y);
}

void lower_quantize(Lowering& l) {
  if (l.take_float_input()) return;
  // Codes that DEQUANTIZE left are quantized again, as if they had been rescaled.
  if (l.input(0).type != Type::kFloat32) l.input_params(0);
  l.emit_rescaled(l.value(0), l.stored(Fused::kNone));
}

void lower_dequantize(Lowering& l) {
  l.input_params(0);
  if (l.output().type != Type::kFloat32) throw Refusal{"to " + name_of(l.output().type)};
  l.alias(l.value(0));
}

}  // namespace quantrain::tflite
