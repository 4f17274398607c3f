#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/cpu.hpp"
#include "framework/kernels/conv_shape.hpp"
#include "framework/kernels/params.hpp"

// Exact integer products u8 x s8 -> s32, requantization, and the other operations of a deployed
// network, split into blocks over threads. Integer results are equal on every instruction set. The
// caller has checked every size and bound.
namespace quantrain::kernels {

/// What a product's operands are known to be.
struct ProductBits {
  int weights = 8;      ///< bits of the weights, 1 to 8
  bool binary = false;  ///< x has only the codes 0 and 1, its zero point is 0, weights are -1 and 1
  /// The packed weights are kept for many calls, some of few rows. Then large linear layers may
  /// keep several weights in a byte.
  bool kept = false;
  /// All products whose weights have at most 4 bits keep several weights in a byte where that takes
  /// less memory, apart from depthwise convolutions.
  bool small = false;
};

/// Weights [O, KH, KW, C / groups] of a convolution, or [O, K] of a linear layer. The constructor
/// packs them for the instruction set that is chosen at that time. If another set is chosen later,
/// each use packs a copy first, which is correct but slow. unpack() gives the weights back, so
/// nobody needs to keep the original.
class PackedWeightsS8 {
 public:
  PackedWeightsS8() = default;
  /// Linear: w [o, k].
  PackedWeightsS8(int64_t o, int64_t k, const int8_t* w, ProductBits bits = {});
  /// Convolution. Of `shape`, only the shape of the weights and the number of groups matter. For
  /// weights that are kept, whether the image is a single pixel without padding matters, too, and
  /// then n, the number of rows of a call for one sample.
  PackedWeightsS8(const Conv2dShape& shape, const int8_t* w, ProductBits bits = {});

  ProductBits bits() const { return bits_; }
  /// The shape of the weights and the groups, as given; for a linear layer, c and o.
  const Conv2dShape& shape() const { return shape_; }
  /// Writes `count` of the original weights, beginning with weight `first`.
  void unpack(int64_t first, int64_t count, int8_t* to) const;
  /// Moves the panels out of the pool, whose blocks may be a quarter larger, unless they are to be
  /// fast and so large that they deserve large pages. For weights that are kept.
  void leave_pool();

  /// Bytes that these packed weights take, or would take if they are planned().
  int64_t bytes() const { return panels_ * panel_bytes_; }
  /// The layout of packed weights of this shape, without the weights.
  static PackedWeightsS8 planned(const Conv2dShape& shape, ProductBits bits = {});

  int64_t outputs() const { return shape_.o; }
  /// Number of entries of ProductParams: one for each output. If several pixels of a depthwise
  /// convolution fill a vector, the entries are repeated for each of these pixels.
  int64_t entries() const { return entries_; }
  /// Entries with padding: kernels read whole panels, and 16 entries at a time.
  int64_t padded_entries() const;
  /// Computes, for each output channel, the sum of its weights. The input's zero point is
  /// multiplied by this sum.
  Buffer<int32_t> sums() const;
  /// A bound of the magnitudes of all sums: 255 * 2^(bits - 1) for each product, and the largest
  /// bias; at most that of docs/quantization.md (7). bias may be null.
  int64_t largest_sum(const int32_t* bias) const;

  // For the kernels' callers.
  Isa isa() const { return isa_; }
  bool depthwise() const { return depthwise_; }
  const int8_t* data() const { return kept_ == nullptr ? data_.data() : kept_.get(); }
  PanelLayout layout() const { return layout_; }
  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t panels_per_group() const { return panels_per_group_; }
  /// Number of groups of 4 in a kernel row of KW * C / groups weights, rounded up as the layout
  /// asks for. With FewBits::kBits, of bytes of 8 weights.
  int64_t quads() const { return quads_; }
  /// The same weights for chosen_isa(): *this, or `copy`, into which they are packed.
  const PackedWeightsS8& for_chosen_isa(PackedWeightsS8& copy) const;

 private:
  void lay_out();
  void choose_layout(ProductNeeds needs);
  void count_panels();
  bool is_large() const;
  void pack_panels(const int8_t* w);
  void pack_panel(int64_t panel, const int8_t* w);
  /// All four pack one row of the convolution's kernel for `count` outputs. The first needs
  /// complete groups of 4, the last fields.
  void pack_words_as_pairs(int64_t count, const int8_t* rows, int8_t* to) const;
  void pack_segment(int64_t count, const int8_t* rows, int8_t* to) const;
  void pack_octets(int64_t count, const int8_t* rows, int8_t* to) const;
  void pack_fields(int64_t count, const int8_t* rows, int8_t* to) const;
  void pack_depthwise(const int8_t* w);
  int8_t weight(int64_t o, int64_t row, int64_t k) const;

  /// Bytes that one group of 4 takes in a panel, for all of the panel's outputs.
  int64_t quad_bytes() const { return layout_.quad_bytes(); }

  Conv2dShape shape_;
  ProductBits bits_;
  Isa isa_ = Isa::kReference;
  bool depthwise_ = false;
  PanelLayout layout_{1, false};
  int64_t entries_ = 0;
  int64_t length_ = 0;  // bytes of x in a row of the convolution's kernel
  int64_t quads_ = 0;
  int64_t panels_ = 0;
  int64_t panel_bytes_ = 0;
  int64_t panels_per_group_ = 0;
  Buffer<int8_t> data_;
  std::shared_ptr<const int8_t> kept_;  // instead of data_
};

/// The start value of each sum of a product, and the requantization of the sums. Computed once for
/// many calls. The kernels subtract only offset = PanelLayout::offset from x, and the start value
/// bias - (zero_x - offset) * (sum of the weights) makes up for the rest of the zero point:
///   sum w (x - zero_x) = sum w (x - offset) - (zero_x - offset) sum w.
class ProductParams {
 public:
  ProductParams() = default;
  /// bias may be null. requantize may be null if nothing is requantized.
  ProductParams(const PackedWeightsS8& w,
                int32_t zero_x,
                const int32_t* bias,
                const RequantizeU8* requantize);

  /// The same parameters for weights that may be packed for another instruction set: *this, or
  /// `copy`, into which they are written.
  const ProductParams& for_weights(const PackedWeightsS8& w, ProductParams& copy) const;

  /// Bytes that the parameters for such weights take. They may be planned().
  static int64_t bytes(const PackedWeightsS8& w, bool requantizes);
  /// Whether the parameters have 0 and another shift in place of this multiplier: it is 0, or its
  /// shift is unusual, and (8) gives the zero point for every sum up to `largest`.
  static bool vanishes(const Multiplier& m, int64_t largest);
  /// One of the arrays below, from its first entry `at` on. It keeps the parameters alive. The
  /// arrays are those of the constructor, except for multipliers that vanish, and the start values,
  /// which are the biases only if zero_x is the layout's offset.
  std::shared_ptr<const int32_t> share(const int32_t* at) const { return {values_, at}; }

  int32_t zero_x() const { return zero_x_; }

  // For the kernels' callers: the values, beginning at a channel. From a panel's first channel,
  // callers may read a whole panel of values, rounded up to 16.
  const int32_t* start(int64_t channel) const { return values_.get() + channel; }
  RequantizeU8 requantize(int64_t channel) const { return requantize_.from(channel); }

 private:
  int32_t zero_x_ = 0;
  int32_t offset_ = 0;
  int64_t size_ = 0;  // entries of each array
  std::shared_ptr<int32_t> values_;
  RequantizeU8 requantize_;
};

/// Bytes that a call below takes from the memory pool while it runs on threads() threads. A call
/// needs them for copies of input rows or for the sums of average pooling. They do not include a
/// copy of weights for another instruction set. The weights w may be planned().
int64_t gemm_scratch(int64_t m, const PackedWeightsS8& w);
int64_t conv2d_scratch(const Conv2dShape& shape, const PackedWeightsS8& w);
int64_t avg_pool2d_scratch(const Conv2dShape& shape);

/// acc[m, o] = sum over k of w[o, k] * (x[m, k] - zero_x) + bias[o].   docs/quantization.md (7)
void gemm_u8s8_s32(int64_t m,
                   int64_t k,
                   const uint8_t* x,
                   const PackedWeightsS8& w,
                   const ProductParams& params,
                   int32_t* acc);
/// The same, requantized before the store.
void gemm_u8s8_u8(int64_t m,
                  int64_t k,
                  const uint8_t* x,
                  const PackedWeightsS8& w,
                  const ProductParams& params,
                  uint8_t* y);

/// Convolution. Elements outside the image count as zero_x.
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

/// y[i, c] = acc[i, c] requantized, for rows x channels. Bit i * channels + c of the mask belongs
/// to y[i, c].   docs/quantization.md (4), (8)
void requantize_s32_u8(int64_t rows,
                       int64_t channels,
                       const int32_t* acc,
                       const RequantizeU8& requantize,
                       uint8_t* y,
                       const GradientMask& mask = {});
/// y[i, c] = float(scale[c] * acc[i, c]), with the product in double.
void dequantize_s32_f32(
    int64_t rows, int64_t channels, const int32_t* acc, const double* scale, float* y);

/// Zero point and multiplier of each operand of a sum, and the zero point and bounds of its output.
/// All are for stored codes.
struct AddParams {
  std::vector<int32_t> zero_x;
  AddMultipliers multipliers;
  StoredOutput y;
};
/// y = the sum of the operands, all as stored codes. y may be an operand.
/// Shapes: x[k] [n] for each operand k  ->  y [n].   docs/quantization.md (4), (11)
void add_u8(int64_t n,
            const uint8_t* const* x,
            const AddParams& params,
            uint8_t* y,
            const GradientMask& mask = {});
/// Zero points of a product's operands, its multiplier, and the zero point and bounds of its
/// output. All are for stored codes.
struct MulParams {
  int32_t zero_a = 0;
  int32_t zero_b = 0;
  Multiplier multiplier;
  StoredOutput y;
};
/// y[i, r, c] = a[i, r, c] * b[i, c], all as stored codes, for n samples of rows x channels. The
/// mask is for the elements of y. y may be an operand of the same size.
/// docs/quantization.md (4), (25)
void mul_u8(int64_t n,
            int64_t rows,
            int64_t channels,
            const uint8_t* a,
            const uint8_t* b,
            const MulParams& params,
            uint8_t* y,
            const GradientMask& mask = {});
/// Max pooling of codes. Elements outside the image count as 0, the lowest code. The first of equal
/// codes wins. position may be null. If it is not, windows must have at most kLargestPoolWindow
/// elements, and position gets the winner's index in its window, counted row by row.
/// docs/quantization.md (10)
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
/// Average pooling. Applies (8) to the sum of (x - zero_x) over the elements inside the image, with
/// the multiplier for the number of these elements. means has an entry for each such number that
/// occurs, in ascending order.   docs/quantization.md (10)
void avg_pool2d_u8(const Conv2dShape& shape,
                   const uint8_t* x,
                   int32_t zero_x,
                   std::span<const MeanMultiplier> means,
                   const StoredOutput& output,
                   uint8_t* y);
/// The same sums, not requantized.
void sum_pool2d_u8_s32(const Conv2dShape& shape, const uint8_t* x, int32_t zero_x, int32_t* sums);
/// y = table[x], for any function of one code. y may be x.
void lookup_u8(int64_t n, const uint8_t* x, const uint8_t* table, uint8_t* y);
/// The same for rows of `channels` codes, with a table of 256 codes for each channel.
void lookup_channels_u8(
    int64_t rows, int64_t channels, const uint8_t* x, const uint8_t* tables, uint8_t* y);
/// Like lookup_u8, for rows of `length` codes. The rows of y are y_stride apart, so that the
/// results can be written into their columns of a concatenation.
void lookup_rows_u8(int64_t rows,
                    int64_t length,
                    const uint8_t* x,
                    const uint8_t* table,
                    uint8_t* y,
                    int64_t y_stride);

/// codes[i] = byte(quantize(x[i] * factor) + offset), after a ReLU if q.bound is not 0. If mask is
/// not null, bit i % 8 of mask[i / 8] tells whether (4) passes the gradient. Returns whether every
/// product is finite. If not, codes and mask are unspecified.   docs/quantization.md (3), (4)
bool quantize_f32_u8(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask);
/// The same with one entry of q for each channel. x is [.., channels, inner] and has n elements.
bool quantize_channels_f32_u8(int64_t n,
                              int64_t channels,
                              int64_t inner,
                              const float* x,
                              const QuantizeF32* q,
                              uint8_t* codes,
                              uint8_t* mask);
/// y[i] = scale * (codes[i] - zero_point), where zero_point is a stored byte.
void dequantize_u8_f32(int64_t n, const uint8_t* codes, float scale, int32_t zero_point, float* y);

}  // namespace quantrain::kernels
