#pragma once

#include <string_view>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/prepared.hpp"
#include "framework/integer/sizes.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {

/// Mean of each window over its `count` elements inside the image: (8) on sum(x - zero_x) with
/// M = scale_x / (count * scale_y).   docs/quantization.md (10)
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C].
/// Source: ONNX AveragePool, count_include_pad = 0.
struct QuantizedAvgPool2d {
  static constexpr std::string_view kType = "quantized_avg_pool2d";
  static constexpr bool kKeepsParams = false;
  static constexpr bool kRunsInPlace = false;
  /// Numbers of elements that its windows may have: padding makes them differ.
  static constexpr int64_t kMostCounts = 1 << 14;

  kernels::Conv2dShape shape;                  ///< of one sample; c = o = groups
  int32_t zero_x = 0;                          ///< of the stored bytes
  std::vector<kernels::MeanMultiplier> means;  ///< for each count that a window has, ascending
  StoredOutput y;

  /// From what the codes mean, after an activation.
  /// Throws: QuantError if parameters are not those of activations, or a multiplier makes no sense;
  /// ShapeError as window_counts().
  static QuantizedAvgPool2d make(const kernels::Conv2dShape& shape,
                                 const QParams& x,
                                 const QParams& y,
                                 Activation activation);

  std::string_view kernel() const { return "avg_pool2d_u8"; }
  std::vector<int64_t> input_sizes() const { return {shape.x_elements()}; }
  int64_t output_size() const { return shape.y_elements(); }
  /// Throws: ShapeError or QuantError naming `where` for numbers that make no sense, or if the sum
  /// over a window could overflow 32 bits.
  void validate(std::string_view where) const;
  friend bool operator==(const QuantizedAvgPool2d&, const QuantizedAvgPool2d&) = default;

  static void describe(auto& op, auto& fields) {
    describe_window(op.shape, fields);
    fields("zero_x", op.zero_x);
    fields("means", op.means);
    fields("y", op.y);
  }
};

/// Elements of a window inside the image, at each of its positions along one axis.
std::vector<int64_t> counts_along(
    int64_t extent, int64_t kernel, int64_t stride, int64_t padding, int64_t outputs);
/// The numbers of elements inside the image that windows have, ascending.
/// Throws: ShapeError naming `where` if rows and columns of windows differ in more ways than
/// kMostCounts.
std::vector<int64_t> window_counts(const kernels::Conv2dShape& shape,
                                   std::string_view where = "avg_pool2d");

template <>
class Prepared<QuantizedAvgPool2d> {
 public:
  explicit Prepared(const QuantizedAvgPool2d& op) : op_(&op) {}
  void run(int64_t n, Inputs inputs, void* output) const;
  /// The sums alone.
  void accumulate(int64_t n, const uint8_t* x, int32_t* sums) const;

 private:
  const QuantizedAvgPool2d* op_;
};

}  // namespace quantrain::integer
