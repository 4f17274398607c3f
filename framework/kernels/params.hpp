#pragma once

#include <cstdint>

#include "framework/kernels/compiler.hpp"

// Parameter structs of kernels: plain data, seen by files with -m flags too, so nothing of the
// standard library's code.
namespace quantrain::kernels {

/// Columns of a panel of a packed matrix. Each instruction set has its own layout inside a panel; a
/// panel takes k * packed_columns(n) floats.
inline constexpr int64_t kPanelColumns = 64;
constexpr int64_t packed_columns(int64_t n) { return (n + 15) / 16 * 16; }

/// Rows [k_begin, k_end) of a panel of k rows and n columns, n <= kPanelColumns, laid out at `to`.
/// Element (i, j) is at b[(i - k_begin) * row_stride + j * col_stride]; one of the strides is 1.
struct PackF32 {
  int64_t k, k_begin, k_end, n;
  const float* b;
  int64_t row_stride, col_stride;
  float* to;
};

/// Where a segment of a sum begins: the element of each row of a, and the row of a packed b or the
/// element of a b in place.
struct SegmentF32 {
  int64_t a, b;
};

/// The rows of a and of c in a call, m in each of several runs. Row i is at first + run * run_step
/// + i * row_step; or, if rows is not null, at rows[i] + run * run_step, with a row_step of 0.
/// Either both a and c have a list of rows, or neither has.
template <class T>
struct RowsF32 {
  T* const* rows;
  T* first;
  int64_t row_step, run_step;
};

/// c[i][column + j] = min(max(sum over s < segments, t < length of
///     a[i][segment[s].a + t * a_step] * b(segment[s].b, t, j) + bias[j], lo), hi)
/// for all rows i of all runs and j < n. The sum is one chain of fused multiply-adds in this order;
/// if accumulate is set, what c held is added to it, before the bias. lo and hi may be infinite,
/// bias null. If b_step is 0, b is a packed panel of b_rows rows, n <= kPanelColumns, and b(i, t,
/// j) is column j of its row i + t; else b(i, t, j) is b[i + t * b_step + j]. fetches_next, for one
/// segment of a b in place: the columns after the panel will be read next and may be fetched.
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
/// for i < m, j < n; what c held is added where accumulate is set. lo and hi may be infinite, bias
/// null. chains_f32 splits each sum into `chains` chains, 1 or 4; dots_f32 ignores it.
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

/// One step of SGD over n elements: g = grad_scale * grad + weight_decay * w; v = momentum * v + g
/// (v = g where first_step); w -= learning_rate * (nesterov ? g + momentum * v : v). velocity may
/// be null where momentum is 0.
struct SgdStep {
  float learning_rate, momentum, weight_decay, grad_scale;
  bool nesterov, first_step;
};
/// One step of Adam (decoupled: AdamW): correction1 = 1 - beta1^t, correction2 = 1 - beta2^t.
struct AdamStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay, grad_scale, correction1, correction2;
  bool decoupled;
};

/// What dropout keeps: element i, where the upper 24 bits of number i + 1 of SplitMix64 with this
/// key are at least `dropped`, in [0, 2^24]. It is multiplied by scale.
struct DropoutF32 {
  uint64_t key;
  int32_t dropped;
  float scale;
};

/// Positions in a window of max pooling have 16 bits.
inline constexpr int64_t kLargestPoolWindow = 1 << 16;

/// Pooling of images [h, w, c] to [oh, ow, c] by windows of kh x kw. Those of depthwise
/// convolutions may be dilated.
struct PoolShape {
  int64_t h, w, c, oh, ow, kh, kw, stride_h, stride_w, pad_h, pad_w;
  int64_t dilation_h = 1, dilation_w = 1;
};

/// A depthwise convolution: the windows, and the epilogue (as in TilesF32).
struct DepthwiseF32 {
  PoolShape pool;
  const float* bias;
  float lo, hi;
  bool accumulate;
};

/// Multipliers and clamp of each output channel; m0 and shift hold `outputs` entries each.
/// docs/quantization.md (8), (9)
struct RequantizeU8 {
  const int32_t* m0 = nullptr;
  const int32_t* shift = nullptr;
  int32_t zero_point = 0;  ///< of the stored bytes
  int32_t lo = 0;          ///< of the stored bytes
  int32_t hi = 255;
  /// Set by the middle end where every shift lies in [33, 54] (real multipliers from 2^-24 to 1/4):
  /// 2^(shift - 33) + zero_point * 2^(shift - 32), which rounds the upper halves of the products
  /// and adds the zero point to the codes that they are shifted to.
  const int32_t* round = nullptr;

  /// The parameters of the channels from this one on.
  QUANTRAIN_INLINE RequantizeU8 from(int64_t channel) const {
    RequantizeU8 r = *this;
    r.m0 = m0 == nullptr ? nullptr : m0 + channel;
    r.shift = shift == nullptr ? nullptr : shift + channel;
    r.round = round == nullptr ? nullptr : round + channel;
    return r;
  }
};

/// Parameters of quantization; codes are stored as code + offset.
struct QuantizeF32 {
  float scale = 1.0f;
  int32_t zero_point = 0;
  int32_t qmin = 0;
  int32_t qmax = 255;
  int32_t offset = 0;
};

/// Layout of dot_u8s8's weights: panels of `width` outputs, the last one filled with zeros. A panel
/// holds, for each group of 4 consecutive k, `width` x 4 bytes; where `pairs` is set, `width` x {k,
/// k + 2} and then `width` x {k + 1, k + 3} as int16.
struct PanelLayout {
  int64_t width;
  bool pairs;
};

/// acc[r, o] = start[o] + sum over segments s and j < 4 * quads of w[o, s, j] * x[r][s *
/// segment_step + j]. Rows may be read up to the next multiple of 4 bytes of each segment, where
/// the weights are 0.
struct DotU8S8 {
  int64_t rows, outputs;
  int64_t segments, segment_step, quads;
  const uint8_t* const* x;
  const int8_t* w;
  int64_t panel;  ///< bytes from a panel of w to the next one
  PanelLayout layout;
  const int32_t* start;     ///< filled up to a whole panel, like the arrays of requantize
  RequantizeU8 requantize;  ///< used where y is not null
  int32_t* acc;             ///< either acc or y is not null; rows are `stride` elements apart
  uint8_t* y;
  int64_t stride;
};

/// How depthwise_u8s8 takes windows of kh rows: four rows of input, a quad, are interleaved byte by
/// byte, so that one dot product sums four rows of a column. The rows of a quad are dilation_h
/// apart, and so are the lines of output that it serves.
struct DepthwiseLayout {
  int64_t lines;  ///< of output that the same quads serve at stride 1: 2 where they fit, else 1
  int64_t quads;  ///< in a column of the window
  int64_t run;    ///< elements of some whole pixels, for which weights lie one after the other
  int64_t block;  ///< channels that are interleaved at a time

  QUANTRAIN_INLINE DepthwiseLayout(int64_t kh, int64_t channels)
      : lines(kh % 4 == 0 ? 1 : 2), quads((kh + 3) / 4), run(channels), block(channels) {
    // Few channels, or an odd number of them, leave lanes empty: several pixels fill them.
    const int64_t divisor = channels & -channels;
    if (divisor < 16 && channels / divisor * 16 <= 256) run = channels / divisor * 16;
    if (divisor >= 16 && channels > 64) block = 64;
  }

  /// Lines of output that are computed from one line of quads of each row of four.
  QUANTRAIN_INLINE int64_t group(const PoolShape& s) const { return s.stride_h == 1 ? lines : 1; }
  /// Bytes of a line of quads, and of those of a group.
  QUANTRAIN_INLINE int64_t quad_line(const PoolShape& s) const {
    return (4 * (s.w + 2 * s.pad_w) * block + 63) / 64 * 64;
  }
  QUANTRAIN_INLINE int64_t group_bytes(const PoolShape& s) const { return quads * quad_line(s); }
  /// Groups of an image that are computed at a time: as many as the first-level cache holds.
  QUANTRAIN_INLINE int64_t groups(const PoolShape& s) const {
    const int64_t all = (s.oh + group(s) - 1) / group(s);
    const int64_t most = 24576 / group_bytes(s);
    return most < 1 ? 1 : most < all ? most : all;
  }
  QUANTRAIN_INLINE int64_t zero_line(const PoolShape& s) const {
    return (s.w * s.c + 63) / 64 * 64;
  }
  /// Bytes of a line outside of the image, and of the groups.
  QUANTRAIN_INLINE int64_t scratch(const PoolShape& s) const {
    return zero_line(s) + groups(s) * group_bytes(s);
  }
};

/// A depthwise convolution: the lines [begin, end) of output of all images. x outside of the image
/// is zero_x.
///   acc[line, p, c] = start[c] + sum over i < kh, j < kw of
///                     w[c, i, j] * x[.., i * dilation_h, j * dilation_w, c]
/// w has a panel for each `layout.width` elements of a run, and there for each quad, each column of
/// the window and each of DepthwiseLayout's lines a group of 4 as in PanelLayout: those rows of the
/// window that the line sees in the quad, else 0.
struct DepthwiseU8S8 {
  PoolShape pool;
  int64_t begin, end;
  const uint8_t* x;
  int32_t zero_x;
  const int8_t* w;
  PanelLayout layout;
  const int32_t* start;     ///< repeated for a run and filled up to a panel, as those of requantize
  RequantizeU8 requantize;  ///< used where y is not null
  int32_t* acc;             ///< either acc or y is not null: the first line of the first image
  uint8_t* y;
  uint8_t* scratch;  ///< DepthwiseLayout::scratch() bytes of zero_x, and of the pool
};

/// (11) as clamp(((a * m_a + b * m_b + offset) >> shift) + zero_point, lo, hi), where offset =
/// 2^(shift-1) - zero_a * m_a - zero_b * m_b.   docs/quantization.md (11)
struct AddU8 {
  int32_t m_a, m_b, shift;
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
