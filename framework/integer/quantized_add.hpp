#pragma once

#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/prepared.hpp"

namespace quantrain::integer {

/// y = a + b with its own parameters. Both operands have a common shift, and the sum is rounded
/// once.   docs/quantization.md (11)
/// Shapes of a sample: a, b, y [size].
/// Source: ONNX Add on quantized operands.
struct QuantizedAdd {
  static constexpr std::string_view kType = "quantized_add";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = true;

  int64_t size = 1;
  int32_t zero_a = 0;  ///< of the stored bytes
  int32_t zero_b = 0;
  AddMultipliers multipliers;
  StoredOutput y;

  /// From the parameters of the codes, with a fused activation.
  /// Throws: QuantError if the parameters are not per tensor with at most 8 bits, or a multiplier
  /// is out of range.
  static QuantizedAdd make(
      int64_t size, const QParams& a, const QParams& b, const QParams& y, Activation activation);

  std::string_view kernel() const { return "add_u8"; }
  std::vector<int64_t> input_sizes() const { return {size, size}; }
  int64_t output_size() const { return size; }
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedAdd&, const QuantizedAdd&) = default;

  static void describe(auto& op, auto& fields) {
    fields("size", op.size);
    fields("zero_a", op.zero_a);
    fields("zero_b", op.zero_b);
    fields("m_a", op.multipliers.a);
    fields("m_b", op.multipliers.b);
    fields("shift", op.multipliers.shift);
    fields("y", op.y);
  }
};

template <>
class Prepared<QuantizedAdd> {
 public:
  explicit Prepared(const QuantizedAdd& op) : op_(&op) {}
  Prepared(const QuantizedAdd&& op) = delete;
  /// The output may overwrite an input.
  void run(int64_t n, Inputs inputs, void* output, const GradientMask& mask = {}) const;

 private:
  const QuantizedAdd* op_;
};

}  // namespace quantrain::integer
