#pragma once

#include <cstdint>
#include <span>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/cpu.hpp"
#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/params.hpp"

// Exact integer products u8 x s8 -> s32, requantization, and the other operations of a deployed
// network, cut into blocks over threads. Integers are equal on every instruction set. The caller
// has checked every size and bound.
namespace quantrain::kernels {

/// Weights [O, KH, KW, C / groups] of a convolution, or [O, K] of a linear layer, laid out for the
/// kernels of the instruction set that is chosen at that time. If another one is chosen later, each
/// use lays out a copy first: right, but slow. The original weights must outlive it.
class PackedWeightsS8 {
 public:
  PackedWeightsS8() = default;
  /// Linear: w [o, k].
  PackedWeightsS8(int64_t o, int64_t k, const int8_t* w);
  /// Convolution; only the shape of the weights and the groups are taken from `shape`.
  PackedWeightsS8(const Conv2dShape& shape, const int8_t* w);

  /// What weights of this shape take.
  static int64_t bytes(const Conv2dShape& shape);
  /// Without weights: how those of this shape will lie.
  static PackedWeightsS8 planned(const Conv2dShape& shape);

  int64_t outputs() const { return sums_.size(); }
  /// Entries of ProductParams: the outputs, or if several pixels fill a vector of a depthwise
  /// convolution, the outputs repeated for each.
  int64_t entries() const { return entries_; }
  /// Sum of the weights of each output channel: what a zero point of the input is multiplied by.
  const int32_t* sums() const { return sums_.data(); }

  // For the kernels' callers.
  Isa isa() const { return isa_; }
  bool depthwise() const { return depthwise_; }
  const int8_t* data() const { return data_.data(); }
  PanelLayout layout() const { return layout_; }
  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t panels_per_group() const { return panels_per_group_; }
  /// Groups of 4 in a kernel row of KW * C / groups weights.
  int64_t quads() const { return quads_; }
  /// The same weights for chosen_isa(): *this, or else `copy`, which is filled.
  const PackedWeightsS8& for_chosen_isa(PackedWeightsS8& copy) const;

 private:
  void lay_out();
  void pack_panels();
  void pack_panel(int64_t panel);
  /// A row of the kernel of `count` outputs.
  void pack_segment(int64_t count, const int8_t* rows, int8_t* to) const;
  void pack_depthwise();
  void sum_panels();

  /// Bytes of a panel's group of 4.
  int64_t quad_bytes() const { return layout_.width * (layout_.pairs ? 8 : 4); }

  Conv2dShape shape_;
  Isa isa_ = Isa::kReference;
  bool depthwise_ = false;
  PanelLayout layout_{1, false};
  int64_t entries_ = 0;
  int64_t quads_ = 0;
  int64_t panels_ = 0;
  int64_t panel_bytes_ = 0;
  int64_t panels_per_group_ = 0;
  const int8_t* plain_ = nullptr;
  Buffer<int8_t> data_;
  Buffer<int32_t> sums_;
};

/// The starts of a product's sums, bias - zero_x * sum of the weights, and how the sums are
/// requantized. Made once for many calls, for every instruction set.
class ProductParams {
 public:
  ProductParams() = default;
  /// bias may be null, and requantize too where nothing is requantized.
  ProductParams(const PackedWeightsS8& w,
                int32_t zero_x,
                const int32_t* bias,
                const RequantizeU8* requantize);

  /// What those for weights of this shape take.
  static int64_t bytes(const Conv2dShape& shape, bool requantizes);

  int32_t zero_x() const { return zero_x_; }

  // For the kernels' callers: the values from a channel on; a whole panel may be read from any
  // channel.
  const int32_t* start(int64_t channel) const { return values_.data() + channel; }
  RequantizeU8 requantize(int64_t channel) const { return requantize_.from(channel); }

 private:
  int32_t zero_x_ = 0;
  Buffer<int32_t> values_;
  RequantizeU8 requantize_;
};

/// Bytes that a call below takes from the pool while it runs, on threads() threads: copies of input
/// rows. Not the copy of weights for another instruction set.
int64_t gemm_scratch(int64_t m, int64_t k);
int64_t conv2d_scratch(const Conv2dShape& shape);
int64_t avg_pool2d_scratch(const Conv2dShape& shape);

/// acc[m, o] = sum over k of w[o, k] * (x[m, k] - zero_x) + bias[o].   docs/quantization.md (7)
void gemm_u8s8_s32(int64_t m,
                   int64_t k,
                   const uint8_t* x,
                   const PackedWeightsS8& w,
                   const ProductParams& params,
                   int32_t* acc);
/// The same, requantized on the way to memory.
void gemm_u8s8_u8(int64_t m,
                  int64_t k,
                  const uint8_t* x,
                  const PackedWeightsS8& w,
                  const ProductParams& params,
                  uint8_t* y);

/// Convolution; elements outside of the image count as zero_x.
void conv2d_u8s8_s32(const Conv2dShape& shape,
                     const uint8_t* x,
                     const PackedWeightsS8& w,
                     const ProductParams& params,
                     int32_t* acc);
void conv2d_u8s8_u8(const Conv2dShape& shape,
                    const uint8_t* x,
                    const PackedWeightsS8& w,
                    const ProductParams& params,
                    uint8_t* y);

/// y[i, c] = acc[i, c] requantized, for rows x channels; element i * channels + c of the mask is
/// that of y[i, c].   docs/quantization.md (4), (8)
void requantize_s32_u8(int64_t rows,
                       int64_t channels,
                       const int32_t* acc,
                       const RequantizeU8& requantize,
                       uint8_t* y,
                       const GradientMask& mask = {});
/// Smallest and largest of each column; rows >= 1.
void column_extremes_s32(
    int64_t rows, int64_t channels, const int32_t* acc, int32_t* min, int32_t* max);
/// Bit j of the flat index j = i * channels + c: 0 < acc[i, c], and acc[i, c] <= hi[c] where hi >=
/// 0 is not null.
void positive_mask_s32(
    int64_t rows, int64_t channels, const int32_t* acc, const int32_t* hi, uint8_t* mask);
/// y[i, c] = float(scale[c] * acc[i, c]), the product in double.
void dequantize_s32_f32(
    int64_t rows, int64_t channels, const int32_t* acc, const double* scale, float* y);

/// Zero points and multipliers of a sum's operands, and its output; all of stored codes.
struct AddParams {
  int32_t zero_a = 0;
  int32_t zero_b = 0;
  AddMultipliers multipliers;
  StoredOutput y;
};
/// y = a + b of stored codes.   docs/quantization.md (4), (11)
void add_u8(int64_t n,
            const uint8_t* a,
            const uint8_t* b,
            const AddParams& params,
            uint8_t* y,
            const GradientMask& mask = {});
/// Zero points and multiplier of a product's operands, and its output; all of stored codes.
struct MulParams {
  int32_t zero_a = 0;
  int32_t zero_b = 0;
  Multiplier multiplier;
  StoredOutput y;
};
/// y[i, r, c] = a[i, r, c] * b[i, c] of stored codes, for n samples of rows x channels; the mask is
/// that of y. y may be an operand of its size.   docs/quantization.md (4), (25)
void mul_u8(int64_t n,
            int64_t rows,
            int64_t channels,
            const uint8_t* a,
            const uint8_t* b,
            const MulParams& params,
            uint8_t* y,
            const GradientMask& mask = {});
/// Max pool on codes; elements outside of the image count as 0, the lowest code. position, where it
/// is not null, is that of the winner in its window, row by row, the first among equals; windows
/// have at most kLargestPoolWindow elements then.   docs/quantization.md (10)
void max_pool2d_u8(const Conv2dShape& shape,
                   const uint8_t* x,
                   uint8_t* y,
                   uint16_t* position = nullptr);
/// The multiplier of an average over `count` elements.
struct MeanMultiplier {
  int64_t count = 1;
  Multiplier multiplier;

  friend bool operator==(const MeanMultiplier&, const MeanMultiplier&) = default;
};
/// Average pool: (8) on the sum of (x - zero_x) over the elements inside the image, with the
/// multiplier for their number; means holds one for each number that occurs, ascending.
/// docs/quantization.md (10)
void avg_pool2d_u8(const Conv2dShape& shape,
                   const uint8_t* x,
                   int32_t zero_x,
                   std::span<const MeanMultiplier> means,
                   const StoredOutput& output,
                   uint8_t* y);
/// The same sums as they are.
void sum_pool2d_u8_s32(const Conv2dShape& shape, const uint8_t* x, int32_t zero_x, int32_t* sums);
/// y = table[x]: any function of one code; y may be x.
void lookup_u8(int64_t n, const uint8_t* x, const uint8_t* table, uint8_t* y);
/// The same with a table of 256 for each of `channels`, which are the columns of rows.
void lookup_channels_u8(
    int64_t rows, int64_t channels, const uint8_t* x, const uint8_t* tables, uint8_t* y);
/// The same as lookup_u8 for rows of `length` codes, in y y_stride apart: an operand of a
/// concatenation.
void lookup_rows_u8(int64_t rows,
                    int64_t length,
                    const uint8_t* x,
                    const uint8_t* table,
                    uint8_t* y,
                    int64_t y_stride);

/// codes[i] = byte(quantize(x[i]) + offset); where mask is not null, bit i % 8 of mask[i / 8] says
/// whether the gradient passes, (4). Returns whether every x is finite; otherwise codes and
/// mask are unspecified. docs/quantization.md (3), (4)
bool quantize_f32_u8(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask);
/// One entry of q for each of `channels` runs of `inner` elements, repeated over the tensor of n
/// elements.
bool quantize_channels_f32_u8(int64_t n,
                              int64_t channels,
                              int64_t inner,
                              const float* x,
                              const QuantizeF32* q,
                              uint8_t* codes,
                              uint8_t* mask);
/// y[i] = scale * (codes[i] - zero_point), zero_point of the stored bytes.
void dequantize_u8_f32(int64_t n, const uint8_t* codes, float scale, int32_t zero_point, float* y);

}  // namespace quantrain::kernels
