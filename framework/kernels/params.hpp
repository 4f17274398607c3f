#pragma once

#include <cstdint>

#include "framework/kernels/compiler.hpp"

// Parameter structs of kernels. Files that are compiled with -m flags include this header, too. So
// the structs are plain data and call no code of the standard library.
namespace quantrain::kernels {

/// The most columns of a panel of a packed matrix. A panel of k rows and n columns takes
/// k * packed_columns(n) floats. The layout inside a panel depends on the instruction set.
inline constexpr int64_t kPanelColumns = 64;
constexpr int64_t packed_columns(int64_t n) { return (n + 15) / 16 * 16; }

/// Packs rows [k_begin, k_end) of a panel of k rows and n columns, n <= kPanelColumns, into the
/// panel at `to`. Element (i, j) of the panel is
///   b[(i - k_begin) * row_stride + j * col_stride].
/// One of the strides is 1.
struct PackF32 {
  int64_t k, k_begin, k_end, n;
  const float* b;
  int64_t row_stride, col_stride;
  float* to;
};

/// Where a segment of a sum begins. A segment consists of consecutive terms whose operands are
/// evenly spaced in memory. In each row of TilesF32::a, it begins `a` elements after the start of
/// the row. In TilesF32::b, it begins at row `b` if the matrix is packed, or at element `b` if the
/// matrix is read in place.
struct SegmentF32 {
  int64_t a, b;
};

/// The rows of TilesF32::a or TilesF32::c: m rows in each of `runs` runs. Row i of a run begins at
///   first + run * run_step + i * row_step.
/// If `rows` is not null, row i begins at rows[i] + run * run_step instead, and row_step is 0.
/// Either both a and c have such a list of rows, or neither has one.
template <class T>
struct RowsF32 {
  T* const* rows;
  T* first;
  int64_t row_step, run_step;
};

/// c[i][column + j] = min(max(sum over s < segments, t < length of
///     a[i][segment[s].a + t * a_step] * b(segment[s].b, t, j) + bias[j], lo), hi)
/// for all rows i of all runs and j < n. The sum is one chain of fused multiply-adds in this order.
/// If accumulate is set, the old value of c is added before the bias. lo and hi may be infinite,
/// and bias may be null.
/// If b_step is 0, b is a packed panel of b_rows rows, n <= kPanelColumns, and b(at, t, j) is
/// column j of row at + t of the panel. Otherwise b is read in place, and b(at, t, j) is
/// b[at + t * b_step + j].
/// If fetches_next is set, the next call will read the columns of b that follow these n columns, so
/// the kernel may prefetch them. fetches_next may be set only if there is one segment and b is read
/// in place.
struct TilesF32 {
  int64_t m, n, runs, segments, length;
  const SegmentF32* segment;
  RowsF32<const float> a;
  int64_t a_step;
  const float* b;
  int64_t b_rows, b_step;
  RowsF32<float> c;
  int64_t column;
  bool accumulate, fetches_next;
  const float* bias;
  float lo, hi;
};

/// c[i * c_step + j] = min(max(sum over t < k of a[i * a_step + t] * b(t, j) + bias[j], lo), hi)
/// for i < m and j < n. float_kernels.inc defines b(t, j). If accumulate is set, the old value of c
/// is added before the bias. lo and hi may be infinite, and bias may be null. chains_f32 splits
/// each sum into `chains` chains, 1 or 4. dots_f32 ignores `chains`.
struct FewF32 {
  int64_t m, n, k, chains;
  const float* a;
  int64_t a_step;
  const float* b;
  int64_t b_step;
  float* c;
  int64_t c_step;
  bool accumulate;
  const float* bias;
  float lo, hi;
};

/// One step of SGD over n elements:
///   g = grad_scale * grad + weight_decay * w;
///   v = momentum * v + g, or v = g if first_step is set;
///   w -= learning_rate * (nesterov ? g + momentum * v : v).
/// The kernel's argument velocity holds v. It may be null if momentum is 0.
struct SgdStep {
  float learning_rate, momentum, weight_decay, grad_scale;
  bool nesterov, first_step;
};
/// One step of Adam, or of AdamW if decoupled is set. In step t = 1, 2, .., correction1 is
/// 1 - beta1^t, and correction2 is 1 - beta2^t.
struct AdamStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay, grad_scale, correction1, correction2;
  bool decoupled;
};

/// grad_x[r, c] = a[c] * g[r, c] + b[c] * (x[r, c] - mean[c]) + d[c], where g is grad_y where the
/// mask has a 1, else 0. A null mask has only ones.
struct BatchNormBackwardF32 {
  const float* x;
  const float* grad_y;
  const uint8_t* mask;
  const float* mean;
  const float* a;
  const float* b;
  const float* d;
  float* grad_x;
};

/// Dropout takes a random integer r for each element i: the upper 24 bits of number i + 1 of the
/// SplitMix64 stream with this key. If r >= dropped, the element is multiplied by scale. Otherwise
/// it becomes 0. `dropped` lies in [0, 2^24].
struct DropoutF32 {
  uint64_t key;
  int32_t dropped;
  float scale;
};

/// The most elements that a window may have if max pooling stores the positions of the maxima,
/// because a position takes 16 bits.
inline constexpr int64_t kLargestPoolWindow = 1 << 16;

/// Pooling of images [h, w, c] to [oh, ow, c] with windows of kh x kw. Depthwise convolutions use
/// this struct, too, and only their windows may be dilated.
struct PoolShape {
  int64_t h, w, c, oh, ow, kh, kw, stride_h, stride_w, pad_h, pad_w;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t padded_w = 0;  ///< columns of the padded image
};

/// A depthwise convolution: its windows, and the epilogue (bias, lo, hi and accumulate as in
/// TilesF32).
struct DepthwiseF32 {
  PoolShape pool;
  const float* bias;
  float lo, hi;
  bool accumulate;
};

/// The multiplier of each output channel, in the arrays m0 and shift, and the clamp of the codes.
/// docs/quantization.md (8), (9)
struct RequantizeU8 {
  const int32_t* m0 = nullptr;
  const int32_t* shift = nullptr;
  int32_t zero_point = 0;  ///< as a stored byte
  int32_t lo = 0;          ///< as a stored byte
  int32_t hi = 255;
  /// Whether the zero point lies in [0, 255], sums times 2^left fit in 32 bits, and every
  /// s = shift + left lies in [33, 54], see set_usual(). Then kernels multiply the sums by 2^left
  /// and use only the upper halves of products. On x86-64, before the remaining shift, they add
  /// 2^(s - 33) + zero_point * 2^(s - 32), so that the shift rounds and its result includes the
  /// zero point.
  bool usual = false;
  int32_t left = 0;  ///< not 0 if some real multiplier is 1/4 or more, as short sums have

  /// The same parameters with `channel` as the first channel.
  QUANTRAIN_INLINE RequantizeU8 from(int64_t channel) const {
    RequantizeU8 r = *this;
    r.m0 = m0 == nullptr ? nullptr : m0 + channel;
    r.shift = shift == nullptr ? nullptr : shift + channel;
    return r;
  }
};

/// Parameters of quantization; codes are stored as code + offset. The value to quantize is
/// x * factor, rounded to float32. If bound is not 0, a ReLU comes first: the value is
/// min(max(x * factor, 0), bound), and only elements with 0 < x * factor < bound pass a gradient.
struct QuantizeF32 {
  float scale = 1.0f;
  int32_t zero_point = 0;
  int32_t qmin = 0;
  int32_t qmax = 255;
  int32_t offset = 0;
  float factor = 1.0f;
  float bound = 0.0f;
};

/// Layout of the weights of dot_u8s8: panels of `width` outputs. The last panel is padded with
/// zeros. For each group of 4 consecutive terms k to k + 3, a panel holds 4 bytes for each output.
/// If `pairs` is set, a panel holds int16 instead: terms k and k + 2 of each output, then terms
/// k + 1 and k + 3 of each output.
/// If `planes` is set, panels of dot_u8s8 hold int16 in another order, whether or not `pairs` is
/// set: term k of each output, then term k + 1 of each output, and so on.
/// If `octets` is set, panels of dot_u8s8 hold groups of 8 consecutive terms, 8 bytes for each
/// output.
/// Panels of depthwise_u8s8 hold groups of 4, too (see DepthwiseU8S8). Their layout depends on
/// `pairs`, but not on `planes` or `octets`.
/// Kernels multiply the weights by x - offset. The offset is 128 if the dot products of the
/// instruction set take only signed bytes, else 0.
///
/// Panels of dot_u8s8 for fewer bits, see FewBits, have other forms, which have no octets.
/// - kNarrow: bytes, as above. The number of groups of 4 is even.
/// - kHalves, kQuarters, kEighths (fields): a byte holds `per_byte()` weights, 2, 4 or 8, the first
///   one in the lowest bits. Its weights belong to terms that are 4 apart: byte i of the 4 bytes of
///   an output holds the terms i, i + 4 and so on of a group of 4 * per_byte() terms. Halves and
///   quarters are raised by `raised()`, 8 or 2, so that they are not negative. Eighths are signs: a
///   1 is a weight of +1, and a 0 is one of -1; a 0 after a segment's last term is no weight.
///   Products of at least `unpacks_from` rows first unpack a panel. `pairs` and `planes` describe
///   the unpacked panel, which has the same width.
/// - kBits: x and the weights are bits. A byte of x or of the panel holds 8 terms, the first one in
///   the lowest bit. Bits of x are 0 or 1. A 1 in the panel is a weight of +1, and a 0 is a weight
///   of -1.
enum class FewBits : uint8_t { kNone, kNarrow, kHalves, kQuarters, kEighths, kBits };

struct PanelLayout {
  int64_t width;
  bool pairs;
  int32_t offset = 0;
  bool planes = false;
  bool octets = false;
  FewBits few = FewBits::kNone;
  int64_t unpacks_from = 0;  ///< products of so many rows unpack; 0: all. Only fields.

  QUANTRAIN_INLINE int64_t per_byte() const {
    return few == FewBits::kHalves     ? 2
           : few == FewBits::kQuarters ? 4
           : few == FewBits::kEighths  ? 8
                                       : 1;
  }
  QUANTRAIN_INLINE int32_t raised() const {
    return few == FewBits::kHalves ? 8 : few == FewBits::kQuarters ? 2 : 1;
  }
  /// Bytes of a group of 4 of each output or, in panels of fields, of per_byte() such groups.
  QUANTRAIN_INLINE int64_t quad_bytes() const { return width * (pairs && per_byte() == 1 ? 8 : 4); }
  /// Of fields: the layout of an unpacked panel.
  QUANTRAIN_INLINE PanelLayout unpacked() const {
    PanelLayout layout = *this;
    layout.few = FewBits::kNone;
    return layout;
  }
};
/// The fields that hold weights of so many bits, at most 4.
QUANTRAIN_INLINE constexpr FewBits fields_of(int bits) {
  return bits == 1 ? FewBits::kEighths : bits == 2 ? FewBits::kQuarters : FewBits::kHalves;
}
/// For PanelLayout::unpacks_from: no product unpacks.
inline constexpr int64_t kNeverUnpacks = int64_t{1} << 62;

/// What panel_layout_u8s8() chooses a layout for: `outputs` outputs, whose sums have segments of
/// `terms` terms.
struct ProductNeeds {
  int64_t outputs, terms;
  /// Bits of the weights, 1 to 8.
  int weight_bits = 8;
  /// x has only the codes 0 and 1, the zero point of x is 0, and the weights are -1 and 1.
  bool binary = false;
  /// The weights exceed the caches, and most of the time goes by reading them: fields may pay.
  bool large = false;
  bool small = false;  ///< fields or bits, whether or not they pay
  int64_t rows = 1;    ///< the rows that a call multiplies at least, if large
};

/// The most outputs of a panel.
inline constexpr int64_t kWidestPanel = 64;
/// The most rows of a call of dot_u8s8.
inline constexpr int64_t kMostDotRows = 480;
/// With AMX, calls of dot_u8s8 are multiplied by tiles if they have so many rows and their sums so
/// many groups of 4. Calls of fewer rows, but at least 16, need kManyTileQuads groups.
inline constexpr int64_t kFewestTileRows = 32;
inline constexpr int64_t kFewestTileQuads = 32;
inline constexpr int64_t kManyTileQuads = 128;

/// acc[r, o] = start[o] + sum over segments s and j < 4 * quads of
///             w[o, s, j] * (x[r][s * segment_step + j] - layout.offset)
/// in 32 bits, modulo 2^32.
/// If a segment's length is not a multiple of 4 bytes (8 with octets), the kernel reads x up to the
/// next multiple. The weights of these extra bytes are 0. With octets, `quads` is even.
/// With kBits, segment_step, quads and `terms` count bytes of 8 terms, and the sum is
///   start[o] + 2 * popcount(x[r] and w[o]) - popcount(x[r]).   docs/quantization.md (27)
/// rows is at most kMostDotRows.
struct DotU8S8 {
  int64_t rows, outputs;
  int64_t segments, segment_step, quads;
  const uint8_t* const* x;
  const int8_t* w;
  int64_t panel;  ///< bytes from a panel of w to the next one
  PanelLayout layout;
  const int32_t* start;     ///< padded to whole panels, like the arrays of requantize
  RequantizeU8 requantize;  ///< used if y is not null; then it must be `usual`
  int32_t* acc;             ///< exactly one of acc and y is null; rows are `stride` elements apart
  uint8_t* y;
  int64_t stride;
  int64_t terms = 0;  ///< with kBits and fields: bytes of a segment of x that are terms
};

/// How depthwise_u8s8 lays out windows of kh rows. Four input rows form a quad: they are
/// interleaved byte by byte, so that one dot product sums four rows of a column. The rows of a quad
/// are dilation_h apart. The output lines that share a quad are dilation_h apart, too.
struct DepthwiseLayout {
  int64_t lines;  ///< output lines that share quads at stride 1
  int64_t quads;  ///< quads in a column of the window
  int64_t run;    ///< elements of one or more whole pixels; each pixel has a copy of the weights
  int64_t block;  ///< channels that are interleaved at a time

  QUANTRAIN_INLINE DepthwiseLayout(int64_t kh, int64_t channels)
      : lines(kh % 4 == 0 ? 1 : 2), quads((kh + 3) / 4), run(channels), block(channels) {
    // If the number of channels is not a multiple of 16, the channels of one pixel would leave
    // lanes empty. Then a run covers several pixels, unless it would exceed 256 elements.
    const int64_t divisor = channels & -channels;
    if (divisor < 16 && channels / divisor * 16 <= 256) run = channels / divisor * 16;
    if (divisor >= 16 && channels > 64) block = 64;
  }

  /// How many output lines share quads at the stride of s. Such lines form a group.
  QUANTRAIN_INLINE int64_t group(const PoolShape& s) const { return s.stride_h == 1 ? lines : 1; }
  /// Bytes of one line of quads.
  QUANTRAIN_INLINE int64_t quad_line(const PoolShape& s) const {
    return (4 * s.padded_w * block + 63) / 64 * 64;
  }
  /// Bytes of all the lines of quads that a group needs.
  QUANTRAIN_INLINE int64_t group_bytes(const PoolShape& s) const { return quads * quad_line(s); }
  /// How many groups of an image are computed at a time: as many as fit in the first-level cache.
  QUANTRAIN_INLINE int64_t groups(const PoolShape& s) const {
    const int64_t all = (s.oh + group(s) - 1) / group(s);
    const int64_t most = 24576 / group_bytes(s);
    return most < 1 ? 1 : most < all ? most : all;
  }
  /// Bytes of a line of zero points.
  QUANTRAIN_INLINE int64_t zero_line(const PoolShape& s) const {
    return (s.w * s.c + 63) / 64 * 64;
  }
  /// Bytes of scratch memory: a line of zero points, which kernels read in place of rows outside
  /// the image, and then the lines of quads of groups(s) groups.
  QUANTRAIN_INLINE int64_t scratch(const PoolShape& s) const {
    return zero_line(s) + groups(s) * group_bytes(s);
  }
};

/// Lines [begin, end) of the output of a depthwise convolution, counted over all images. Outside
/// the image, x is zero_x.
///   acc[line, p, c] = start[c] + sum over i < kh, j < kw of
///                     w[c, i, j] * (x[.., i * dilation_h, j * dilation_w, c] - layout.offset)
/// p is a pixel of the line. The row and column indices of x[..] are relative to the first row and
/// column of the pixel's window.
/// w has a panel for each `layout.width` elements of a run. For each quad, each column of the
/// window and each of the DepthwiseLayout::lines lines, a panel holds groups of 4 weights as in
/// PanelLayout. Each group has one weight for each row of the quad. A weight is 0 if the line's
/// window does not contain the row.
struct DepthwiseU8S8 {
  PoolShape pool;
  int64_t begin, end;
  const uint8_t* x;
  int32_t zero_x;
  const int8_t* w;
  PanelLayout layout;
  const int32_t* start;     ///< repeated over a run, then padded, like the arrays of requantize
  RequantizeU8 requantize;  ///< used if y is not null
  /// The kernel requantize_s32_u8 of the instruction set. Used if y is not null and
  /// requantize.usual is not set; the reference needs none.
  void (*requantize_sums)(int64_t n,
                          int64_t period,
                          const int32_t* acc,
                          const RequantizeU8& r,
                          uint8_t* y,
                          uint8_t* mask,
                          int32_t mask_lo,
                          int32_t mask_hi);
  /// Exactly one of acc and y is null. The other one points to line 0 of the first image.
  int32_t* acc;
  uint8_t* y;
  uint8_t* scratch;  ///< DepthwiseLayout::scratch(pool) bytes, filled with zero_x
};

/// (11) in the form clamp(((sum of x_k * m[k] + offset) >> shift) + zero_point, lo, hi) for
/// `operands` operands, with offset = 2^(shift-1) - sum of zero_k * m[k].
/// docs/quantization.md (11)
struct AddU8 {
  int64_t operands;
  const int32_t* m;
  int32_t shift;
  int64_t offset;
  int32_t zero_point, lo, hi;
};

/// clamp((((a - zero_a) * (b - zero_b) * m0 + 2^(shift-1)) >> shift) + zero_point, lo, hi).
/// docs/quantization.md (25)
struct MulU8 {
  int32_t zero_a, zero_b, m0, shift;
  int32_t zero_point, lo, hi;
};

}  // namespace quantrain::kernels
