#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// y = a * b, where y has its own parameters. Requantizes (a - zero_a) * (b - zero_b) by (8) with
/// M = scale_a scale_b / scale_y. Each row of a is multiplied by the same b. With one row, the
/// product is elementwise.   docs/quantization.md (25)
/// Shapes of a sample: a [rows, channels], b [channels]  ->  y like a.
/// Source: ONNX Mul on quantized operands; Hu et al. 2018 (squeeze and excitation).
struct QuantizedMul {
  static constexpr std::string_view kType = "quantized_mul";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = true;
  static constexpr ChannelUse kChannels = ChannelUse::kSame;

  int64_t rows = 1;
  int64_t channels = 1;
  int32_t zero_a = 0;  ///< of the stored bytes
  int32_t zero_b = 0;
  Multiplier multiplier;
  StoredOutput y;

  /// Makes the operation from the parameters of the codes, with a fused activation.
  /// Throws: QuantError if parameters are per channel or have more than 8 bits, or the multiplier
  /// is out of range.
  static QuantizedMul make(int64_t rows,
                           int64_t channels,
                           const QParams& a,
                           const QParams& b,
                           const QParams& y,
                           Activation activation);

  std::string_view kernel() const { return "mul_u8"; }
  std::vector<int64_t> input_sizes() const { return {rows * channels, channels}; }
  int64_t output_size() const { return rows * channels; }
  int32_t input_zero_point(size_t i) const { return i == 0 ? zero_a : zero_b; }
  int32_t output_zero_point() const { return y.zero_point; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return CodeClamp{y.lo, y.hi}; }
  int64_t prepared_bytes() const { return 0; }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const;
  void remove_channels(const std::vector<bool>& dead) { channels = without_dead(dead, channels); }
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedMul&, const QuantizedMul&) = default;

  static void describe(auto& op, auto& fields) {
    fields("rows", op.rows);
    fields("channels", op.channels);
    fields("zero_a", op.zero_a);
    fields("zero_b", op.zero_b);
    fields("m0", op.multiplier.m0);
    fields("shift", op.multiplier.shift);
    fields("y", op.y);
  }
};

template <>
class Prepared<QuantizedMul> {
 public:
  explicit Prepared(const QuantizedMul& op) : op_(&op) {}
  Prepared(const QuantizedMul&& op) = delete;
  /// The output may overwrite an input of the same size.
  void run(int64_t n, Inputs inputs, void* output, const GradientMask& mask = {}) const;

 private:
  const QuantizedMul* op_;
};

}  // namespace quantrain::integer
