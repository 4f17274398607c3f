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

/// y[r, i] = exp(x[r, i]) / (sum over j of exp(x[r, j])), along rows. The table `powers` holds, in
/// fixed point, exp(-scale_x d) for every possible difference d between the largest code of a row
/// and another code. The quotient is rounded once.   docs/quantization.md (26)
/// Shapes of a sample: x, y [rows, classes].
/// Source: ONNX Softmax, axis = -1; TFLite's 8-bit softmax.
struct QuantizedSoftmax {
  static constexpr std::string_view kType = "quantized_softmax";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = true;
  static constexpr ChannelUse kChannels = ChannelUse::kAll;
  static constexpr size_t kPowers = 256;             ///< possible differences of codes
  static constexpr int32_t kOne = int32_t{1} << 30;  ///< 1 in fixed point

  int64_t rows = 1;
  int64_t classes = 1;
  std::vector<int32_t> powers = std::vector<int32_t>(kPowers, kOne);  ///< 2^30 exp(-scale_x d)
  Multiplier multiplier{int32_t{1} << 30, 30};                        ///< 1 / scale_y
  StoredOutput y;

  /// Makes the operation from the parameters of the codes, with a fused activation.
  /// Throws: QuantError if parameters are per channel or have more than 8 bits, or the multiplier
  /// is out of range.
  static QuantizedSoftmax make(
      int64_t rows, int64_t classes, const QParams& x, const QParams& y, Activation activation);

  std::string_view kernel() const { return "softmax"; }
  std::vector<int64_t> input_sizes() const { return {rows * classes}; }
  int64_t output_size() const { return rows * classes; }
  int32_t input_zero_point(size_t) const { return -1; }
  int32_t output_zero_point() const { return y.zero_point; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return CodeClamp{y.lo, y.hi}; }
  int64_t prepared_bytes() const { return 0; }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels) const {
    return Channels(static_cast<size_t>(classes), Interval{y.lo, y.hi});
  }
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedSoftmax&, const QuantizedSoftmax&) = default;

  static void describe(auto& op, auto& fields) {
    fields("rows", op.rows);
    fields("classes", op.classes);
    fields("powers", op.powers);
    fields("m0", op.multiplier.m0);
    fields("shift", op.multiplier.shift);
    fields("y", op.y);
  }
};

/// round(2^30 exp(-scale d)) for d from 0 to 255.
std::vector<int32_t> softmax_powers(float scale);

/// The exponentials of a row of codes and their sum. The row must have at least one class.
class SoftmaxRow {
 public:
  SoftmaxRow(const std::vector<int32_t>& powers, const uint8_t* x, int64_t classes);
  int32_t power(uint8_t code) const { return powers_[max_ - code]; }
  int64_t sum() const { return sum_; }
  /// The output code for code x, before the clamp.
  int64_t code(uint8_t x, const Multiplier& m, int32_t zero_point) const {
    return rounding_shift(int64_t{power(x)} * m.m0 / sum_, m.shift) + zero_point;
  }

 private:
  const int32_t* powers_;
  uint8_t max_;
  int64_t sum_ = 0;
};

template <>
class Prepared<QuantizedSoftmax> {
 public:
  explicit Prepared(const QuantizedSoftmax& op) : op_(&op) {}
  Prepared(const QuantizedSoftmax&& op) = delete;
  /// The output may overwrite the input.
  void run(int64_t n, Inputs inputs, void* output) const;

 private:
  const QuantizedSoftmax* op_;
};

}  // namespace quantrain::integer
