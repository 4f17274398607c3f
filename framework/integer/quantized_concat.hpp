#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"
#include "framework/integer/quantized_lookup.hpp"

namespace quantrain::integer {

/// Concatenates the rows of the operands, each rescaled to the output's parameters by (8).
/// docs/quantization.md (11)
/// Shapes of a sample: x_i [rows, run_i]  ->  y [rows, sum of run_i].
/// Source: ONNX Concat.
struct QuantizedConcat {
  static constexpr std::string_view kType = "quantized_concat";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = false;
  static constexpr ChannelUse kChannels = ChannelUse::kOther;

  struct Part {
    int64_t run = 1;     ///< length of this operand's rows
    int32_t zero_x = 0;  ///< of the stored bytes
    Multiplier multiplier;

    friend bool operator==(const Part&, const Part&) = default;
    static void describe(auto& part, auto& fields) {
      fields("run", part.run);
      fields("zero_x", part.zero_x);
      fields("m0", part.multiplier.m0);
      fields("shift", part.multiplier.shift);
    }
  };

  int64_t rows = 1;
  std::vector<Part> parts;
  StoredOutput y;

  /// Makes the operation from the parameters of the codes, with a fused activation.
  /// Throws: QuantError if y or an operand is per channel or has more than 8 bits, or a multiplier
  /// is out of range; ShapeError unless `runs` has one entry for each operand.
  static QuantizedConcat make(int64_t rows,
                              const std::vector<int64_t>& runs,
                              const std::vector<QParams>& x,
                              const QParams& y,
                              Activation activation);

  int64_t row_length() const;
  std::string_view kernel() const { return "lookup_u8"; }
  std::vector<int64_t> input_sizes() const;
  int64_t output_size() const { return rows * row_length(); }
  int32_t input_zero_point(size_t i) const { return parts[i].zero_x; }
  int32_t output_zero_point() const { return y.zero_point; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return CodeClamp{y.lo, y.hi}; }
  int64_t prepared_bytes() const { return static_cast<int64_t>(parts.size() * sizeof(CodeTable)); }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const;
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedConcat&, const QuantizedConcat&) = default;

  static void describe(auto& op, auto& fields) {
    fields("rows", op.rows);
    fields("parts", op.parts);
    fields("y", op.y);
  }
};

template <>
class Prepared<QuantizedConcat> {
 public:
  explicit Prepared(const QuantizedConcat& op);
  Prepared(const QuantizedConcat&& op) = delete;
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const QuantizedConcat* op_;
  std::vector<CodeTable> tables_;  // one for each part
};

}  // namespace quantrain::integer
