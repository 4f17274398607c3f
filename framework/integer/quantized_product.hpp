#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/constant.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

/// Requantization by (8) with a multiplier for each output channel.
struct Requantization {
  SharedArray<int32_t> m0;     ///< [O]
  SharedArray<int32_t> shift;  ///< [O]
  StoredOutput y;

  friend bool operator==(const Requantization&, const Requantization&) = default;

  static void describe(auto& op, auto& fields) {
    fields.words("m0", op.m0);
    fields.bytes("shift", op.shift);
    fields("y", op.y);
  }
};

/// The part that QuantizedLinear and QuantizedConv2d share: acc = sum of w * (x - zero_x) + bias.
/// If `output` is set, the result is y = requantize(acc) by (8). Otherwise it is acc.
/// docs/quantization.md (7), (8)
struct QuantizedProduct {
  int32_t zero_x = 0;         ///< of the stored bytes
  int64_t x_bits = 8;         ///< 1 if x has only the codes 0 and 1, else 8
  Constant weight;            ///< [O, ...]
  SharedArray<int32_t> bias;  ///< [O]; empty: none.   docs/quantization.md (6)
  std::optional<Requantization> output;

  const int32_t* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
  // Facts of the operation that contains the product. See operation.hpp.
  int32_t output_zero_point() const { return output ? output->y.zero_point : -1; }
  std::optional<CodeClamp> output_codes() const;
  /// Whether the product is one of bits.   docs/quantization.md (27)
  bool is_binary() const { return x_bits == 1 && zero_x == 0 && weight.bits() == 1; }
  kernels::ProductBits bits() const {
    return {weight.bits(), is_binary(), true, weight.keep() == KeepWeights::kSmall};
  }
  /// The layout of packed weights of this shape.
  kernels::PackedWeightsS8 planned(const kernels::Conv2dShape& shape) const {
    return kernels::PackedWeightsS8::planned(shape, bits());
  }
  /// Name of the kernel for weights of this shape, for example "gemm_u8s8_u8". `operation` is
  /// "gemm" or "conv2d".
  std::string_view kernel(std::string_view operation, const kernels::Conv2dShape& shape) const;
  int64_t prepared_bytes(const kernels::Conv2dShape& shape) const;
  /// The sum of output channel o before its first product.
  Interval first_sum(int64_t o) const;
  /// The codes of output channel o for an interval of sums.
  Interval codes_of(int64_t o, const Interval& sums) const;
  friend bool operator==(const QuantizedProduct&, const QuantizedProduct&) = default;

  static void describe(auto& op, auto& fields) {
    fields("zero_x", op.zero_x);
    fields.optional("x_bits", op.x_bits, 8);
    fields("weight", op.weight);
    fields("bias", op.bias);
    fields("output", op.output);
  }
};

/// The requantization of sums with the scales sum_scale[o] = scale_x * scale_w[o] to codes with the
/// parameters y. Its clamp applies a fused activation, too.   docs/quantization.md (8), (9)
/// Throws: QuantError if y is invalid, is per channel or has more than 8 bits, or if a multiplier
/// is out of range.
Requantization requantization(const std::vector<double>& sum_scale,
                              const QParams& y,
                              Activation activation);
/// Throws: ShapeError naming `where` unless there are `channels` multipliers and `channels` shifts;
/// QuantError naming `where` if a multiplier or shift is out of the range of (8), the zero point is
/// not in [0, 255], or the clamp is not a range within [0, 255].
void validate(const Requantization& output, int64_t channels, std::string_view where);
void validate(const StoredOutput& y, std::string_view where);
/// Throws: QuantError naming `where` if m0 is neither 0 nor in [2^30, 2^31), or shift is not in
/// [1, 62].
void validate(const Multiplier& multiplier, std::string_view where);
/// Throws: QuantError naming `where` unless the zero point is in [0, 255].
void validate_zero_point(int32_t zero_point, std::string_view where);

/// y[i, c] = requantize(acc[i, c]) by (8). Also writes the gradient mask if mask.bits is set.
void finish(const Requantization& output,
            int64_t rows,
            const int32_t* acc,
            uint8_t* y,
            const GradientMask& mask = {});

/// Upper bound on the magnitude of one output channel's int32 accumulator, for every input and at
/// every point of the sum:
/// |bias - zero_x * sum(w)| + 255 * max(sum of positive w, sum of |negative w|).
/// docs/quantization.md (7)
int64_t accumulator_bound(int64_t length, const int8_t* weights, int32_t bias, int32_t zero_x);
/// Every accumulator_bound() must be below this limit.
inline constexpr int64_t kAccumulatorLimit = int64_t{1} << 31;
/// The largest accumulator_bound() of all channels.
int64_t accumulator_bound(const QuantizedProduct& product, int64_t outputs);

/// Throws: QuantError naming `where` unless bits is in [kLeastBits, kMostBits].
void check_weight_bits(int64_t bits, std::string_view where);
/// Proves that no accumulator of a product can overflow. Products that share weights are proved
/// without reading the weights again, unless their numbers of outputs differ, or their sums or
/// biases are near the limit.
class OverflowCheck {
 public:
  /// The shape of the product's weights must be valid.
  /// Throws: QuantError naming `where` and the channel if an accumulator could overflow, or if
  /// more than 2^26 shared weights would have to be read again, or if the products have more than
  /// 2^36 weights, each product counted.
  void operator()(const QuantizedProduct& product, int64_t outputs, std::string_view where);

 private:
  /// The largest sum of weights of one sign, for weights and a number of outputs.
  std::map<std::tuple<Constant::Id, int64_t>, int64_t> largest_;
  int64_t left_ = int64_t{1} << 26;  // weights that may be read again
  int64_t all_ = int64_t{1} << 36;   // weights that all products may have
};

/// Throws: ShapeError naming `where` if outputs or length is below 1, the number of weights is not
/// outputs * length, or there are biases and their number is not `outputs`; QuantError naming
/// `where` if the zero point is not in [0, 255], weight.bits() is out of range or a weight does not
/// fit in it; what `overflow` throws. If `output` is set, also throws like validate(*output).
void validate(const QuantizedProduct& product,
              int64_t outputs,
              int64_t length,
              std::string_view where,
              OverflowCheck& overflow);
void validate(const QuantizedProduct& product,
              int64_t outputs,
              int64_t length,
              std::string_view where);

/// The zero point, biases and requantization in the form that kernels take.
kernels::ProductParams product_params(const kernels::PackedWeightsS8& packed,
                                      const QuantizedProduct& product);
/// Lets the product's biases, multipliers and shifts be those of its parameters where they are
/// equal, so that a model keeps one copy.
void share_arrays(QuantizedProduct& product, const kernels::ProductParams& params);
/// The arrays that the product keeps besides: those that are not equal. The weights are planned().
std::vector<const SharedArray<int32_t>*> own_arrays(const QuantizedProduct& product,
                                                    const kernels::PackedWeightsS8& planned);

}  // namespace quantrain::integer
