#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
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
  static constexpr ChannelUse kChannels = ChannelUse::kOther;

  int64_t rows = 1;
  int64_t inputs = 1;
  int64_t outputs = 1;
  QuantizedProduct product;

  int64_t channels() const { return outputs; }
  std::string_view kernel() const { return product.kernel("gemm", weights()); }
  std::vector<int64_t> input_sizes() const { return {rows * inputs}; }
  int64_t output_size() const { return rows * outputs; }
  int64_t multiply_adds() const { return rows * outputs * inputs; }
  int32_t input_zero_point(size_t) const { return product.zero_x; }
  int32_t output_zero_point() const { return product.output_zero_point(); }
  std::optional<CodeClamp> output_codes(const QParams&) const { return product.output_codes(); }
  /// The shape of the weights, as a convolution's of `rows` images of one pixel.
  kernels::Conv2dShape weights() const { return {.n = rows, .c = inputs, .o = outputs}; }
  int64_t prepared_bytes() const { return product.prepared_bytes(weights()); }
  int64_t scratch_bytes(int64_t n) const {
    return kernels::gemm_scratch(n * rows, product.planned(weights()));
  }
  Channels output_channels(InputChannels in) const;
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where, OverflowCheck& overflow) const;
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
  const kernels::ProductParams& params() const { return params_; }

 private:
  const QuantizedLinear* op_;
  std::shared_ptr<const kernels::PackedWeightsS8> packed_;
  kernels::ProductParams params_;
};

}  // namespace quantrain::integer
