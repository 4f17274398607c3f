#include <algorithm>
#include <cstring>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "framework/kernels/integer/dot.hpp"
#include "framework/kernels/integer/integer.hpp"
#include "framework/kernels/pool_shape.hpp"

namespace quantrain::kernels {
namespace {

// The most output pixels in one call of dot_u8s8.
constexpr int64_t kPixels = kMostDotRows;
// With AMX, lines at least this long are multiplied apart if their windows lie beside the image.
constexpr int64_t kTilePixels = 64;
// The most bytes of weights that a run unpacks before it starts. Larger ones are unpacked one panel
// at a time, by each call of dot_u8s8.
constexpr int64_t kMostUnpacked = int64_t{1} << 18;
// The most bytes of input rows that a thread copies at a time, unless one output row needs more.
constexpr int64_t kMostScratch = int64_t{1} << 20;

/// The input rows that some output rows of one image read. x is where the first window starts. The
/// steps are in bytes.
struct Band {
  const uint8_t* x;
  int64_t row_step;
  int64_t pixel_step;
};

/// The order in which the columns of a padded row are stored: by their remainder modulo the
/// dilation, so that the taps of a window lie side by side.
class ColumnOrder {
 public:
  explicit ColumnOrder(const Conv2dShape& s)
      : remainders_(s.kw > 1 ? s.dilation_w : 1), columns_(s.padded_w()) {}

  bool is_natural() const { return remainders_ == 1; }
  /// Calls f(i, place) for i < count, where `place` is the place of column `first + i * step`.
  template <class F>
  void for_columns(int64_t first, int64_t step, int64_t count, const F& f) const {
    // A local copy stays in a register, because no store of bytes can change it.
    const int64_t remainders = remainders_;
    const int64_t each = columns_ / remainders;    // columns that every remainder has
    const int64_t longer = columns_ % remainders;  // number of remainders that have one more
    const int64_t remainder_step = step % remainders;
    const int64_t quotient_step = step / remainders;
    int64_t remainder = first % remainders;
    int64_t quotient = first / remainders;
    for (int64_t i = 0; i < count; ++i) {
      f(i, remainder * each + std::min(remainder, longer) + quotient);
      remainder += remainder_step;
      quotient += quotient_step;
      if (remainder < remainders) continue;
      remainder -= remainders;
      ++quotient;
    }
  }

 private:
  int64_t remainders_;
  int64_t columns_;
};

/// Splits images into bands of output rows, and finds or copies the input rows of each band.
class Bands {
 public:
  /// `reach` is the number of bytes that kernels read, beginning at the start of a window's row.
  Bands(const Conv2dShape& shape, const uint8_t* x, int32_t zero_x, int64_t channels, int64_t reach)
      : s_(shape),
        columns_(shape),
        oh_(shape.oh()),
        x_(x),
        zero_x_(zero_x),
        channels_(channels),
        reach_(reach) {
    const int64_t row = s_.ow() * s_.o * (s_.reduction() + kOutputProducts);
    int64_t rows = kBlockProducts / row;
    if (rows_scratch(std::min(rows, oh_)) > kMostScratch) {
      const int64_t inputs = std::max(kMostScratch / row_step(), s_.window_h());
      rows = std::min(rows, (inputs - s_.window_h()) / s_.stride_h + 1);
    }
    per_image_ = even_blocks(oh_, rows);
    most_ = kBlockProducts * per_image_ / (oh_ * row);
  }

  /// Bytes of the input rows of the largest band, with padding.
  int64_t scratch() const { return rows_scratch((oh_ + per_image_ - 1) / per_image_); }
  int64_t count() const { return s_.n * per_image_; }
  const ColumnOrder& columns() const { return columns_; }

  /// Calls body(image, first output row, end of the output rows, scratch for input) for every band.
  /// Threads share the bands.
  template <class Body>
  void for_each(const Body& body) const {
    parallel_for_even(s_.n * per_image_, most_, [&](int64_t begin, int64_t end) {
      Buffer<uint8_t> scratch;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = divide(i, per_image_);
        const int64_t band = i - image * per_image_;
        body(image, first_row(band), first_row(band + 1), scratch);
      }
    });
  }

  /// Channels [channel, channel + channels_) of a band's input: in place, or copied to scratch with
  /// padding, in the order of columns().
  Band input(
      int64_t image, int64_t begin, int64_t end, int64_t channel, Buffer<uint8_t>& scratch) const {
    const int64_t top = begin * s_.stride_h - s_.pad_h;
    const int64_t bottom = (end - 1) * s_.stride_h - s_.pad_h + s_.window_h();
    const int64_t last_read =
        ((image * s_.h + bottom - 1) * s_.w + (s_.ow() - 1) * s_.stride_w) * s_.c + reach_;
    if (s_.padded_w() == s_.w && channels_ == s_.c && top >= 0 && bottom <= s_.h &&
        columns_.is_natural() && last_read <= s_.x_elements()) {
      return {x_ + (image * s_.h + top) * s_.w * s_.c, s_.w * s_.c, s_.c};
    }
    const int64_t row_step = this->row_step();
    const int64_t bytes = (bottom - top) * row_step;
    if (scratch.size() < bytes) scratch = Buffer<uint8_t>(bytes);
    std::memset(scratch.data(), zero_x_, static_cast<size_t>(bytes));
    for (int64_t h = std::max<int64_t>(top, 0); h < std::min(bottom, s_.h); ++h) {
      copy_row(image, h, channel, scratch.data() + (h - top) * row_step);
    }
    return {scratch.data(), row_step, channels_};
  }

 private:
  int64_t first_row(int64_t band) const { return divide(oh_ * band, per_image_); }
  int64_t row_step() const { return s_.padded_w() * channels_; }
  /// Bytes of the input rows that `rows` output rows read, with padding.
  int64_t rows_scratch(int64_t rows) const {
    return ((rows - 1) * s_.stride_h + s_.window_h()) * row_step();
  }

  void copy_row(int64_t image, int64_t h, int64_t channel, uint8_t* to) const {
    const uint8_t* const from = x_ + (image * s_.h + h) * s_.w * s_.c + channel;
    if (channels_ == s_.c && columns_.is_natural()) {
      std::memcpy(to + s_.pad_w * channels_, from, static_cast<size_t>(s_.w * s_.c));
      return;
    }
    columns_.for_columns(s_.pad_w, 1, s_.w, [&](int64_t w, int64_t place) {
      std::memcpy(to + place * channels_, from + w * s_.c, static_cast<size_t>(channels_));
    });
  }

  const Conv2dShape& s_;
  ColumnOrder columns_;
  int64_t oh_;
  const uint8_t* x_;
  int32_t zero_x_;
  int64_t channels_;
  int64_t reach_;
  int64_t per_image_;
  int64_t most_;
};

bool is_pointwise(const Conv2dShape& s) {
  return s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.padded_h() == s.h &&
         s.padded_w() == s.w && s.groups == 1;
}

/// The convolution whose channels are the bytes of a bit for each channel.
Conv2dShape bits_of(Conv2dShape s) {
  s.c = bit_bytes(s.c);
  return s;
}

/// Bytes of the weights that a run unpacks before it starts, or 0 if it does not.
int64_t unpacked_first(const Conv2dShape& s, const PanelLayout& layout, int64_t panels) {
  const int64_t pixels = s.n * s.oh() * s.ow();
  const int64_t bytes = panels * dot_scratch(layout, pixels, s.kh, s.kw * s.group_c());
  return bytes <= kMostUnpacked ? bytes : 0;
}

/// The windows of depthwise_u8s8, and how its output lines are split into tasks.
struct Depthwise {
  PoolShape pool;
  int64_t scratch;
  int64_t most_lines;  ///< the most lines of a task

  explicit Depthwise(const Conv2dShape& s)
      : pool(pool_shape(s)),
        scratch(DepthwiseLayout(s.kh, s.c).scratch(pool)),
        most_lines(kBlockProducts / (pool.ow * s.c * (s.reduction() + kOutputProducts))) {}
};

void depthwise(const Conv2dShape& s,
               const uint8_t* x,
               const PackedWeightsS8& given,
               const ProductParams& given_params,
               int32_t* acc,
               uint8_t* y) {
  PackedWeightsS8 copy;
  const PackedWeightsS8& w = given.for_chosen_isa(copy);
  ProductParams params_copy;
  const ProductParams& params = given_params.for_weights(w, params_copy);
  const Depthwise cut(s);
  const IntegerTable& kernels = integer_table();
  parallel_for_even(s.n * s.oh(), cut.most_lines, [&](int64_t begin, int64_t end) {
    Buffer<uint8_t> scratch(cut.scratch);
    std::memset(scratch.data(), params.zero_x(), static_cast<size_t>(cut.scratch));
    kernels.depthwise_u8s8({.pool = cut.pool,
                            .begin = begin,
                            .end = end,
                            .x = x,
                            .zero_x = params.zero_x(),
                            .w = w.data(),
                            .layout = w.layout(),
                            .start = params.start(0),
                            .requantize = params.requantize(0),
                            .requantize_sums = kernels.requantize_s32_u8,
                            .acc = acc,
                            .y = y,
                            .scratch = scratch.data()});
  });
}

/// Collects output pixels of one group of channels, in order, and computes up to kPixels at a time.
class PixelCalls {
 public:
  /// p.acc or p.y points to the first pixel.
  explicit PixelCalls(const DotU8S8& p) : p_(p) { p_.x = pointers_; }

  /// Applies to all pixels that are passed to add() after this call: the sum of a pixel consists of
  /// `segments` segments, whose weights begin at w.
  void set_segments(const int8_t* w, int64_t segments) {
    if (p_.w != w || p_.segments != segments) flush();
    p_.w = w;
    p_.segments = segments;
  }
  /// Adds the next pixel, whose first window row begins at x.
  void add(const uint8_t* x) {
    pointers_[p_.rows++] = x;
    if (p_.rows == kPixels) flush();
  }
  /// Adds the next `count` pixels, whose inputs are `step` bytes apart.
  void add(const uint8_t* x, int64_t step, int64_t count) {
    while (count > 0) {
      const int64_t n = std::min(count, kPixels - p_.rows);
      const uint8_t** const to = pointers_ + p_.rows;
      int64_t i = 0;
      for (; i + 4 <= n; i += 4, x += 4 * step) {
        to[i] = x;
        to[i + 1] = x + step;
        to[i + 2] = x + 2 * step;
        to[i + 3] = x + 3 * step;
      }
      for (; i < n; ++i, x += step) to[i] = x;
      count -= n;
      p_.rows += n;
      if (p_.rows == kPixels) flush();
    }
  }
  void flush() {
    if (p_.rows == 0) return;
    dot_u8s8(kernels_, p_);
    if (p_.acc != nullptr) p_.acc += p_.rows * p_.stride;
    if (p_.y != nullptr) p_.y += p_.rows * p_.stride;
    p_.rows = 0;
  }

 private:
  const IntegerTable& kernels_ = integer_table();
  DotU8S8 p_;
  const uint8_t* pointers_[kPixels];
};

void conv2d(const Conv2dShape& shape,
            const uint8_t* x,
            const PackedWeightsS8& given,
            const ProductParams& given_params,
            int32_t* acc,
            uint8_t* y) {
  if (shape.y_elements() <= 0) return;
  if (given.depthwise()) return depthwise(shape, x, given, given_params, acc, y);
  const int64_t inputs = shape.n * shape.h * shape.w;
  if (is_pointwise(shape)) {
    if (y != nullptr) return gemm_u8s8_u8(inputs, shape.c, x, given, given_params, y);
    return gemm_u8s8_s32(inputs, shape.c, x, given, given_params, acc);
  }

  PackedWeightsS8 copy;
  const PackedWeightsS8& w = given.for_chosen_isa(copy);
  ProductParams params_copy;
  const ProductParams& params = given_params.for_weights(w, params_copy);
  Buffer<uint8_t> bits;
  const bool packs = w.layout().few == FewBits::kBits;
  if (packs) {
    bits = packed_bits(inputs, shape.c, x);
    x = bits.data();
  }
  const Conv2dShape s = packs ? bits_of(shape) : shape;
  const int64_t oh = s.oh();
  const int64_t ow = s.ow();
  DotU8S8 product{};
  product.outputs = s.group_o();
  product.segments = s.kh;
  product.quads = w.quads();
  product.w = w.data();
  product.panel = w.panel_bytes();
  product.layout = w.layout();
  product.terms = s.kw * s.group_c();
  const int64_t panels = s.groups * w.panels_per_group();
  Buffer<int8_t> unpacked;
  if (const int64_t bytes = unpacked_first(s, w.layout(), panels); bytes > 0) {
    unpacked = Buffer<int8_t>(bytes);
    unpack_panels(integer_table(), product, panels, unpacked.data());
    product.w = unpacked.data();
    product.panel = bytes / panels;
    product.layout = w.layout().unpacked();
    product.quads = (product.terms + 3) / 4;
  }
  // Calls of few pixels would not be multiplied by tiles, so short lines have all segments.
  const bool joins = w.isa() == Isa::kAmx && !packs && s.kh * product.quads >= kFewestTileQuads &&
                     ow < kTilePixels;
  const bool skips = params.zero_x() == w.layout().offset && !joins;
  const int64_t segment_bytes = product.panel / s.kh;
  const Bands bands(s, x, params.zero_x(), s.group_c(), 4 * product.quads);
  bands.for_each([&](int64_t image, int64_t begin, int64_t end, Buffer<uint8_t>& scratch) {
    for (int64_t group = 0; group < s.groups; ++group) {
      const Band band = bands.input(image, begin, end, group * s.group_c(), scratch);
      const int8_t* const weights = product.w + group * w.panels_per_group() * product.panel;
      const int64_t to = (image * oh + begin) * ow * s.o + group * s.group_o();
      DotU8S8 p = product;
      p.segment_step = s.dilation_h * band.row_step;
      p.w = weights;
      p.start = params.start(group * s.group_o());
      p.requantize = params.requantize(group * s.group_o());
      p.acc = acc != nullptr ? acc + to : nullptr;
      p.y = y != nullptr ? y + to : nullptr;
      p.stride = s.o;
      PixelCalls pixels(p);
      const int64_t lowest_top = s.h - s.window_h();
      const int64_t pixel_step = s.stride_w * band.pixel_step;
      for (int64_t row = begin; row < end; ++row) {
        // [first, last) are the rows of the convolution's kernel that are summed. If zero_x equals
        // the layout's offset, these are the rows inside the image, because dot_u8s8 would multiply
        // the others by 0. Otherwise, these are all rows.
        const int64_t top = row * s.stride_h - s.pad_h;
        int64_t first = 0;
        int64_t last = s.kh;
        if (skips && (top < 0 || top > lowest_top)) {
          const auto above = [&](int64_t rows) { return (rows + s.dilation_h - 1) / s.dilation_h; };
          first = std::clamp<int64_t>(above(-top), 0, s.kh);
          last = std::clamp<int64_t>(above(s.h - top), first, s.kh);
        }
        pixels.set_segments(weights + first * segment_bytes, last - first);
        const uint8_t* const line =
            band.x + ((row - begin) * s.stride_h + first * s.dilation_h) * band.row_step;
        if (bands.columns().is_natural()) {
          pixels.add(line, pixel_step, ow);
        } else {
          bands.columns().for_columns(0, s.stride_w, ow, [&](int64_t, int64_t place) {
            pixels.add(line + place * band.pixel_step);
          });
        }
      }
      pixels.flush();
    }
  });
}

}  // namespace

int64_t conv2d_scratch(const Conv2dShape& s, const PackedWeightsS8& w) {
  if (s.y_elements() <= 0) return 0;
  if (is_pointwise(s)) return gemm_scratch(s.n * s.h * s.w, w);
  if (is_depthwise(s)) {
    const Depthwise cut(s);
    return std::min<int64_t>(even_blocks(s.n * s.oh(), cut.most_lines), threads()) * cut.scratch;
  }
  const bool packs = w.layout().few == FewBits::kBits;
  const Conv2dShape read = packs ? bits_of(s) : s;
  const Bands bands(read, nullptr, 0, read.group_c(), 0);
  const int64_t all = unpacked_first(s, w.layout(), s.groups * w.panels_per_group());
  const int64_t own =
      all > 0 ? 0 : dot_scratch(w.layout(), s.oh() * s.ow(), s.kh, s.kw * s.group_c());
  const int64_t tasks = std::min<int64_t>(bands.count(), threads());
  return all + tasks * (bands.scratch() + own) + (packs ? read.x_elements() : 0);
}

void conv2d_u8s8_s32(const Conv2dShape& shape,
                     const uint8_t* x,
                     const PackedWeightsS8& w,
                     const ProductParams& params,
                     int32_t* acc) {
  conv2d(shape, x, w, params, acc, nullptr);
}

void conv2d_u8s8_u8(const Conv2dShape& shape,
                    const uint8_t* x,
                    const PackedWeightsS8& w,
                    const ProductParams& params,
                    uint8_t* y) {
  conv2d(shape, x, w, params, nullptr, y);
}

}  // namespace quantrain::kernels
