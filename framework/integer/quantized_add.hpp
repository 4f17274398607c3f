#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

/// y = x_0 + x_1 + ..., where y has its own parameters. All operands have a common shift, and the
/// sum is rounded once.   docs/quantization.md (11)
/// Shapes of a sample: each x_i and y [size].
/// Source: ONNX Add and Sum on quantized operands.
struct QuantizedAdd {
  static constexpr std::string_view kType = "quantized_add";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = true;
  static constexpr ChannelUse kChannels = ChannelUse::kSame;
  /// A file cannot hold a step with more inputs than this. The sum of this many operands stays far
  /// below 2^63.
  static constexpr size_t kMostOperands = 1 << 14;

  struct Operand {
    int32_t zero_x = 0;  ///< of the stored bytes
    int32_t m = 0;

    friend bool operator==(const Operand&, const Operand&) = default;
    static void describe(auto& operand, auto& fields) {
      fields("zero_x", operand.zero_x);
      fields("m", operand.m);
    }
  };

  int64_t size = 1;
  std::vector<Operand> operands;
  int32_t shift = 1;  ///< of all operands
  StoredOutput y;

  /// Makes the operation from the parameters of its operands and its result, with a fused
  /// activation.
  /// Throws: QuantError if the parameters of an operand or of y are per channel or have more than 8
  /// bits, or a multiplier is out of range.
  static QuantizedAdd make(int64_t size,
                           const std::vector<QParams>& x,
                           const QParams& y,
                           Activation activation);

  std::string_view kernel() const { return "add_u8"; }
  std::vector<int64_t> input_sizes() const { return std::vector<int64_t>(operands.size(), size); }
  int64_t output_size() const { return size; }
  int32_t input_zero_point(size_t i) const { return operands[i].zero_x; }
  int32_t output_zero_point() const { return y.zero_point; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return CodeClamp{y.lo, y.hi}; }
  int64_t prepared_bytes() const {
    return static_cast<int64_t>(operands.size() * 2 * sizeof(int32_t));
  }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const;
  void remove_channels(const std::vector<bool>& dead) { size = without_dead(dead, size); }
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedAdd&, const QuantizedAdd&) = default;

  // Two operands are stored under separate names, as in older files, which always have two. Any
  // other number of operands is stored as a list.
  static void describe(auto& op, auto& fields) {
    fields("size", op.size);
    if (fields.are_two("operands", op.operands)) {
      fields("zero_a", op.operands[0].zero_x);
      fields("zero_b", op.operands[1].zero_x);
      fields("m_a", op.operands[0].m);
      fields("m_b", op.operands[1].m);
    } else {
      fields("operands", op.operands);
    }
    fields("shift", op.shift);
    fields("y", op.y);
  }
};

template <>
class Prepared<QuantizedAdd> {
 public:
  explicit Prepared(const QuantizedAdd& op);
  Prepared(const QuantizedAdd&& op) = delete;
  /// The output may overwrite an input.
  void run(int64_t n, Inputs inputs, void* output, const GradientMask& mask = {}) const;

 private:
  int64_t size_;
  kernels::AddParams params_;
};

}  // namespace quantrain::integer
