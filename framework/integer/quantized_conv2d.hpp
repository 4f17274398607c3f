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
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

/// acc = sum over the window of w * (x - zero_x) + bias; y = requantize(acc) by (8). Outside of the
/// image, x is zero_x.   docs/quantization.md (7), (8)
/// Shapes: x [N, H, W, C], w [O, KH, KW, C / groups]  ->  y [N, OH, OW, O].
/// A convolution of signals [N, L, C] is a convolution of images with one row or one column.
/// docs/quantization.md (22)
/// Source: ONNX ConvInteger, with TFLite's fused requantization.
struct QuantizedConv2d {
  static constexpr std::string_view kType = "quantized_conv2d";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = false;
  static constexpr ChannelUse kChannels = ChannelUse::kOther;

  kernels::Conv2dShape shape;  ///< of one sample
  QuantizedProduct product;

  int64_t channels() const { return shape.o; }
  std::string_view kernel() const { return product.kernel("conv2d", weights()); }
  std::vector<int64_t> input_sizes() const { return {shape.x_elements()}; }
  int64_t output_size() const { return shape.y_elements(); }
  int64_t multiply_adds() const { return shape.y_elements() * shape.reduction(); }
  int32_t input_zero_point(size_t) const { return product.zero_x; }
  int32_t output_zero_point() const { return product.output_zero_point(); }
  std::optional<CodeClamp> output_codes(const QParams&) const { return product.output_codes(); }
  kernels::Conv2dShape weights() const { return shape; }
  int64_t prepared_bytes() const { return product.prepared_bytes(weights()); }
  int64_t scratch_bytes(int64_t n) const {
    return kernels::conv2d_scratch(with_batch(shape, n), product.planned(weights()));
  }
  Channels output_channels(InputChannels inputs) const;
  /// Throws: ShapeError or QuantError naming `where` if a number is out of range.
  void validate(std::string_view where, OverflowCheck& overflow) const;
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedConv2d&, const QuantizedConv2d&) = default;

  static void describe(auto& op, auto& fields) {
    describe_window(op.shape, fields);
    fields.optional("dilation_h", op.shape.dilation_h, 1);
    fields.optional("dilation_w", op.shape.dilation_w, 1);
    QuantizedProduct::describe(op.product, fields);
  }
};

template <>
class Prepared<QuantizedConv2d> {
 public:
  explicit Prepared(const QuantizedConv2d& op);
  Prepared(const QuantizedConv2d&& op) = delete;
  void run(int64_t n, Inputs inputs, void* output) const;
  /// Only the sums, [n * OH * OW, O]. finish() converts them to the codes that run() gives.
  void accumulate(int64_t n, const uint8_t* x, int32_t* acc) const;
  const kernels::ProductParams& params() const { return params_; }

 private:
  const QuantizedConv2d* op_;
  std::shared_ptr<const kernels::PackedWeightsS8> packed_;
  kernels::ProductParams params_;
};

}  // namespace quantrain::integer
