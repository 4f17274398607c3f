#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"
#include "framework/integer/sizes.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

/// Mean of each window over its `count` elements inside the image. Requantizes sum(x - zero_x) by
/// (8) with M = scale_x / (divisor * scale_y). The divisor is `count`, or the same number for all
/// windows. If input and output have the same parameters, the operation may be the mean of the
/// codes, with ties away from the code zero_x.   docs/quantization.md (10)
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C].
/// Source: ONNX AveragePool, with count_include_pad = 0 or 1.
struct QuantizedAvgPool2d {
  static constexpr std::string_view kType = "quantized_avg_pool2d";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = false;
  static constexpr ChannelUse kChannels = ChannelUse::kSame;
  /// Limit for the number of different sizes (height and width) that windows have inside the image,
  /// and so for the number of distinct counts. Counts differ because windows overlap the padding.
  static constexpr int64_t kMostCounts = 1 << 14;

  kernels::Conv2dShape shape;                  ///< of one sample; c = o = groups
  int32_t zero_x = 0;                          ///< of the stored bytes
  std::vector<kernels::MeanMultiplier> means;  ///< one for each distinct count, ascending
  StoredOutput y;

  /// Makes the operation from the parameters of the codes, with a fused activation. A divisor of 0
  /// stands for each window's own count.
  /// Throws: QuantError if x or y is per channel or has more than 8 bits, or a multiplier is out of
  /// range; ShapeError like window_counts().
  static QuantizedAvgPool2d make(const kernels::Conv2dShape& shape,
                                 const QParams& x,
                                 const QParams& y,
                                 Activation activation,
                                 int64_t divisor = 0);

  /// Makes the mean of codes with parameters x, which the output keeps. Ties go away from code 0.
  /// Throws: QuantError if x is per channel or has more than 8 bits; ShapeError like
  /// window_counts(), or if a window has more than kMostMeanCodes elements.
  static QuantizedAvgPool2d make_mean_of_codes(const kernels::Conv2dShape& shape,
                                               const QParams& x,
                                               Activation activation);
  /// Whether the result depends on zero_x in ties only: zero_x and y.zero_point are equal, and the
  /// multipliers are those of code_mean_multiplier().
  bool means_codes() const;

  std::string_view kernel() const { return "avg_pool2d_u8"; }
  std::vector<int64_t> input_sizes() const { return {shape.x_elements()}; }
  int64_t output_size() const { return shape.y_elements(); }
  int32_t input_zero_point(size_t) const { return zero_x; }
  int32_t output_zero_point() const { return y.zero_point; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return CodeClamp{y.lo, y.hi}; }
  int64_t prepared_bytes() const { return 0; }
  int64_t scratch_bytes(int64_t n) const {
    return kernels::avg_pool2d_scratch(with_batch(shape, n));
  }
  Channels output_channels(InputChannels inputs) const;
  void remove_channels(const std::vector<bool>& dead) {
    shape.c = shape.o = shape.groups = without_dead(dead, shape.c);
  }
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range, the means do not
  /// fit the windows, or the sum over a window could overflow 32 bits.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedAvgPool2d&, const QuantizedAvgPool2d&) = default;

  static void describe(auto& op, auto& fields) {
    describe_window(op.shape, fields);
    fields("zero_x", op.zero_x);
    fields("means", op.means);
    fields("y", op.y);
  }
};

/// For each window position along one axis: the number of the window's elements inside the image.
std::vector<int64_t> counts_along(
    int64_t extent, int64_t kernel, int64_t stride, int64_t padding, int64_t outputs);
/// The distinct numbers of elements that windows have inside the image, ascending.
/// Throws: ShapeError naming `where` if the parts of windows inside the image have more than
/// kMostCounts combinations of height and width.
std::vector<int64_t> window_counts(const kernels::Conv2dShape& shape,
                                   std::string_view where = "avg_pool2d");

template <>
class Prepared<QuantizedAvgPool2d> {
 public:
  explicit Prepared(const QuantizedAvgPool2d& op) : op_(&op) {}
  Prepared(const QuantizedAvgPool2d&& op) = delete;
  void run(int64_t n, Inputs inputs, void* output) const;
  /// Only the sums, without requantization.
  void accumulate(int64_t n, const uint8_t* x, int32_t* sums) const;

 private:
  const QuantizedAvgPool2d* op_;
};

}  // namespace quantrain::integer
