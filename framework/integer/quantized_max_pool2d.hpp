#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/arithmetic/stored.hpp"
#include "framework/integer/channels.hpp"
#include "framework/integer/prepared.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {

/// Largest code of each window. The codes keep their parameters.   docs/quantization.md (10)
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C].
/// Source: ONNX MaxPool.
struct QuantizedMaxPool2d {
  static constexpr std::string_view kType = "quantized_max_pool2d";
  static constexpr bool kKeepsParams = true;
  static constexpr bool kRunsInPlace = false;
  static constexpr ChannelUse kChannels = ChannelUse::kSame;

  kernels::Conv2dShape shape;  ///< of one sample; c = o = groups

  std::string_view kernel() const { return "max_pool2d_u8"; }
  std::vector<int64_t> input_sizes() const { return {shape.x_elements()}; }
  int64_t output_size() const { return shape.y_elements(); }
  int32_t input_zero_point(size_t) const { return -1; }
  int32_t output_zero_point() const { return -1; }
  std::optional<CodeClamp> output_codes(const QParams&) const { return std::nullopt; }
  int64_t prepared_bytes() const { return 0; }
  int64_t scratch_bytes(int64_t) const { return 0; }
  Channels output_channels(InputChannels inputs) const { return over(*inputs[0], shape.c); }
  void remove_channels(const std::vector<bool>& dead) {
    shape.c = shape.o = shape.groups = without_dead(dead, shape.c);
  }
  /// Throws: ShapeError naming `where` in the same cases as check_pool().
  void validate(std::string_view where) const { check_pool(where, shape); }
  friend bool operator==(const QuantizedMaxPool2d&, const QuantizedMaxPool2d&) = default;

  static void describe(auto& op, auto& fields) { describe_window(op.shape, fields); }
};

template <>
class Prepared<QuantizedMaxPool2d> {
 public:
  explicit Prepared(const QuantizedMaxPool2d& op) : op_(&op) {}
  Prepared(const QuantizedMaxPool2d&& op) = delete;
  /// position, if not null: for each output, the index of the largest code in its window, counted
  /// row by row. Among equal codes, the first.
  void run(int64_t n, Inputs inputs, void* output, uint16_t* position = nullptr) const;

 private:
  const QuantizedMaxPool2d* op_;
};

}  // namespace quantrain::integer
