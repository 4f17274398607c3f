#pragma once

#include "framework/integer/prepared.hpp"
#include "framework/integer/quantized_product.hpp"

namespace quantrain::integer {

/// acc[r, o] = sum over i of w[o, i] * (x[r, i] - zero_x) + bias[o]; y = requantize(acc) by (8).
/// docs/quantization.md (7), (8)
/// Shapes of a sample: x [rows, inputs], w [outputs, inputs]  ->  y [rows, outputs].
/// Source: ONNX MatMulInteger, with TFLite's fused requantization.
struct QuantizedLinear {
  static constexpr std::string_view kType = "quantized_linear";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = false;

  int64_t rows = 1;
  int64_t inputs = 1;
  int64_t outputs = 1;
  QuantizedProduct product;

  int64_t channels() const { return outputs; }
  std::string_view kernel() const { return product.output ? "gemm_u8s8_u8" : "gemm_u8s8_s32"; }
  std::vector<int64_t> input_sizes() const { return {rows * inputs}; }
  int64_t output_size() const { return rows * outputs; }
  int64_t multiply_adds() const { return rows * outputs * inputs; }
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedLinear&, const QuantizedLinear&) = default;

  static void describe(auto& op, auto& fields) {
    fields("rows", op.rows);
    fields("inputs", op.inputs);
    fields("outputs", op.outputs);
    QuantizedProduct::describe(op.product, fields);
  }
};

template <>
class Prepared<QuantizedLinear> {
 public:
  explicit Prepared(const QuantizedLinear& op);
  Prepared(const QuantizedLinear&& op) = delete;
  void run(int64_t n, Inputs inputs, void* output) const;
  /// Only the sums, [n * rows, outputs]. finish() converts them to the codes that run() gives.
  void accumulate(int64_t n, const uint8_t* x, int32_t* acc) const;

 private:
  const QuantizedLinear* op_;
  kernels::PackedWeightsS8 packed_;
  kernels::ProductParams params_;
};

}  // namespace quantrain::integer
