#include "framework/kernels/float/conv.hpp"

#include <algorithm>
#include <vector>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/conv_axis.hpp"
#include "framework/kernels/float/depthwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/padding.hpp"
#include "framework/kernels/float/tiles.hpp"

// A convolution is a matrix product whose left operand is never built in memory. Row (n, i, j) of
// that operand consists of KH segments, one for each row of the convolution's kernel. Each segment
// is KW * C contiguous values of the input, so one pointer for each output pixel is enough. With a
// dilation or groups, each tap is a segment of its own.
// Output pixels are grouped by the taps of their windows that lie inside the image, and only those
// taps are multiplied. If sums are short, the image gets a border of zeros instead (padding.hpp).
// The data gradient is the same loop over the output's gradient, with the taps in reverse order. If
// the convolution has a stride, only every stride-th tap has read a given input pixel. So the data
// gradient also groups input pixels by their position modulo the stride.
namespace quantrain::kernels {
namespace {

// The fewest and the most multiply-adds that a task should have.
constexpr int64_t kTaskWork = 500000;
constexpr int64_t kMostTaskWork = 4000000;
constexpr int64_t kFewTasks = 4;
constexpr int64_t kFewPixels = 1024;        // for at most this many, packing weights does not pay
constexpr int64_t kImagePixels = 64 * 256;  // larger images may be split over tasks
constexpr int64_t kManyPixels = 32;         // a group of this many pixels per image fills tiles
constexpr int64_t kLongestChain = 1024;     // terms; longer sums are cut into blocks
constexpr int64_t kBlockTerms = 512;        // the most terms of such a block
constexpr int64_t kPackGrain = 1 << 14;     // weights that a task packs

/// y[n, i, j, :] = sum over taps (u, v) of p(u, v) * b(u, v). The row p(u, v) [channels] is the
/// pixel of x that the tap reads. The matrix b(u, v) [channels, columns] consists of the tap's rows
/// of b [kh * kw * channels, columns].
struct Correlation {
  const float* x;
  const Conv2dShape* padding;        // if not null, x gets a border of zeros; h and w include it
  int64_t n, h, w, pixel, channels;  // pixels of x are `pixel` values apart
  std::vector<AxisPart> lines, pixels;
  int64_t oh, ow, columns, kh, kw;
  const float* b;
  int64_t b_step;  // elements between rows if b is read in place; 0 if b is packed
  int64_t b_tap;   // from tap to tap: rows if b is packed, elements if b is read in place
  float* y;
  int64_t y_pixel;
};

/// Computes lines [begin, end), one tap group after the other. A tap group consists of the pixels
/// whose windows cover the same taps.
class TapGroups {
 public:
  TapGroups(const Correlation& p, int64_t begin, int64_t end, const EpilogueF32& epilogue)
      : p_(p), x_(p.x), begin_(begin), end_(end), epilogue_(epilogue) {
    if (p.padding != nullptr) pad();
    tiles_.runs = 1;
    tiles_.a_step = 1;
    tiles_.b_rows = p.kh * p.kw * p.channels;
    tiles_.b_step = p.b_step;
  }

  /// Computes the tap group of these lines and pixels.
  void multiply(const AxisPart& lines, const AxisPart& pixels) {
    set_segments(lines, pixels);
    // Pixels that are this close together need no pointers of their own.
    if (pixels.source_step * p_.pixel <= 2 && pixels.count >= 4) {
      for_lines(lines, pixels, [&](int64_t count, const float* x, float* y) {
        tiles_.m = pixels.count;
        tiles_.runs = count;
        tiles_.a = {nullptr, x, pixels.source_step * p_.pixel, lines.source_step * p_.w * p_.pixel};
        tiles_.c = {
            nullptr, y, pixels.result_step * p_.y_pixel, lines.result_step * p_.ow * p_.y_pixel};
        multiply_panels();
      });
      return;
    }
    if (from_.size() == 0) {
      from_ = Buffer<const float*>((end_ - begin_) * p_.ow);
      to_ = Buffer<float*>((end_ - begin_) * p_.ow);
    }
    // If the lines are whole images and each image has many pixels of the group, a list of the
    // first image's pixels is enough. Otherwise, the list has the pixels of all lines, so that
    // tiles have many rows.
    const bool once =
        begin_ % p_.oh == 0 && end_ % p_.oh == 0 && lines.count * pixels.count >= kManyPixels;
    tiles_.m = 0;
    tiles_.runs = once ? 0 : 1;
    for_lines(lines, pixels, [&](int64_t count, const float* x, float* y) {
      if (once && tiles_.runs++ > 0) return;
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < pixels.count; ++j) {
          from_[tiles_.m + j] = x + j * pixels.source_step * p_.pixel;
          to_[tiles_.m + j] = y + j * pixels.result_step * p_.y_pixel;
        }
        tiles_.m += pixels.count;
        x += lines.source_step * p_.w * p_.pixel;
        y += lines.result_step * p_.ow * p_.y_pixel;
      }
    });
    tiles_.a = {from_.data(), nullptr, 0, p_.h * p_.w * p_.pixel};
    tiles_.c = {to_.data(), nullptr, 0, p_.oh * p_.ow * p_.y_pixel};
    multiply_panels();
  }

 private:
  /// Segments that are summed in one chain. All segments have the same length.
  struct Block {
    int64_t first, segments, length;
  };

  /// Makes one segment for each row of the convolution's kernel if the taps of a row read
  /// contiguous values, else one segment for each tap. A long sum has several blocks. A segment
  /// that is too long for a block is cut into pieces.
  void set_segments(const AxisPart& lines, const AxisPart& pixels) {
    const bool contiguous = p_.channels == p_.pixel && p_.b_tap == p_.channels &&
                            pixels.tap_step == 1 && pixels.tap_source == 1;
    const int64_t taps = contiguous ? std::min<int64_t>(1, pixels.taps) : pixels.taps;
    const int64_t length = contiguous ? pixels.taps * p_.channels : p_.channels;
    const int64_t all = lines.taps * taps;
    const bool whole = all * length <= kLongestChain;
    const int64_t piece = whole ? length : std::min(length, kBlockTerms);
    const int64_t in_block = whole ? all : kBlockTerms / piece;
    SegmentF32* to = segments_.data();
    blocks_.clear();
    int64_t begin = 0;
    do {  // at least one block, though it may have no terms
      const int64_t first = to - segments_.data();
      add_segments(lines, pixels, taps, begin, to);
      int64_t i = 0;
      do {
        blocks_.push_back(
            {first + i, std::min(in_block, all - i), std::min(piece, length - begin)});
        i += in_block;
      } while (i < all);
      begin += piece;
    } while (begin < length);
  }

  /// Adds an entry for each segment: the piece that begins at element `begin` of the segment.
  void add_segments(const AxisPart& lines,
                    const AxisPart& pixels,
                    int64_t taps,
                    int64_t begin,
                    SegmentF32*& to) const {
    const int64_t b_begin = begin * (p_.b_step == 0 ? 1 : p_.b_step);
    for (int64_t u = 0; u < lines.taps; ++u) {
      const int64_t first = (lines.first_tap + u * lines.tap_step) * p_.kw + pixels.first_tap;
      for (int64_t v = 0; v < taps; ++v) {
        *to++ = {(u * lines.tap_source * p_.w + v * pixels.tap_source) * p_.pixel + begin,
                 (first + v * pixels.tap_step) * p_.b_tap + b_begin};
      }
    }
  }

  /// Calls f(number of lines, source of the first pixel, result of the first pixel) for each image.
  template <class F>
  void for_lines(const AxisPart& lines, const AxisPart& pixels, F&& f) const {
    for (int64_t image = begin_ / p_.oh; image * p_.oh < end_; ++image) {
      const int64_t first = image * p_.oh + lines.result;
      const auto before = [&](int64_t line) {
        if (line <= first) return int64_t{0};
        if (line >= first + lines.count * lines.result_step) return lines.count;
        return (line - first + lines.result_step - 1) / lines.result_step;
      };
      const int64_t i = before(begin_);
      const int64_t count = before(end_) - i;
      if (count == 0) continue;
      const int64_t row = image * p_.h + lines.source + i * lines.source_step;
      const int64_t line = first + i * lines.result_step;
      f(count,
        x_ + ((row - first_row_) * p_.w + pixels.source) * p_.pixel,
        p_.y + (line * p_.ow + pixels.result) * p_.y_pixel);
    }
  }

  /// Copies the lines of x that output lines [begin, end) read, with their padding.
  void pad() {
    const auto seen = [&](int64_t line, int64_t tap) {
      return line / p_.oh * p_.h + line % p_.oh + tap;
    };
    first_row_ = seen(begin_, 0);
    const int64_t end = seen(end_ - 1, p_.padding->window_h());
    padded_ = Buffer<float>((end - first_row_) * p_.w * p_.pixel);
    pad_lines(*p_.padding, p_.x, first_row_, end, padded_.data());
    x_ = padded_.data();
  }

  void multiply_panels() {
    if (tiles_.m == 0) return;
    for (int64_t column = 0; column < p_.columns; column += kPanelColumns) {
      tiles_.n = std::min(p_.columns - column, kPanelColumns);
      tiles_.b = p_.b + column * (p_.b_step == 0 ? tiles_.b_rows : 1);
      tiles_.column = column;
      for (size_t i = 0; i < blocks_.size(); ++i) {
        tiles_.segment = segments_.data() + blocks_[i].first;
        tiles_.segments = blocks_[i].segments;
        tiles_.length = blocks_[i].length;
        set_epilogue(tiles_, epilogue_, column, i == 0, i + 1 == blocks_.size());
        kernel_(tiles_);
      }
    }
  }

  const Correlation& p_;
  const float* x_;
  int64_t first_row_ = 0;  // the row of x where x_ begins
  Buffer<float> padded_;
  int64_t begin_, end_;
  const EpilogueF32& epilogue_;
  void (*kernel_)(const TilesF32&) = float_table().tiles_f32;
  Buffer<const float*> from_;
  Buffer<float*> to_;
  // Has room for kh * kw segments, each cut into as many pieces as the longest segment can have.
  // The longest segment is a whole row of the convolution's kernel.
  Buffer<SegmentF32> segments_{p_.kh * p_.kw * ((p_.kw * p_.channels - 1) / kBlockTerms + 1)};
  std::vector<Block> blocks_;
  TilesF32 tiles_{};
};

void correlate(const Correlation& p, const EpilogueF32& epilogue) {
  const int64_t lines = p.n * p.oh;
  const int64_t line_work = p.ow * p.kh * p.kw * p.channels * p.columns + 1;
  const int64_t task_work =
      std::clamp(lines * line_work / enough_tasks(), kTaskWork, kMostTaskWork);
  const int64_t task_lines = task_work / line_work + 1;
  const auto multiply = [&](int64_t begin, int64_t end) {
    TapGroups groups(p, begin, end, epilogue);
    for (const AxisPart& i : p.lines) {
      for (const AxisPart& j : p.pixels) groups.multiply(i, j);
    }
  };
  // A few tasks of few images would take longer than one: what they read and write moves from core
  // to core, and their tap groups have fewer pixels.
  if (lines * line_work < kFewTasks * kTaskWork && p.n < 16 && lines * p.ow <= kImagePixels)
    return multiply(0, lines);
  // If there are enough images, or only one thread, tasks get whole images, because tap groups then
  // have many pixels. The split changes no bits, because each sum is computed by one task.
  const bool whole = (p.n >= 16 || threads() == 1) && p.oh * p.ow <= kImagePixels;
  if (task_lines > p.oh || whole) {
    parallel_for_even(p.n, (task_lines + p.oh - 1) / p.oh, [&](int64_t begin, int64_t end) {
      multiply(begin * p.oh, end * p.oh);
    });
  } else {
    parallel_for_even(lines, task_lines, multiply);
  }
}

/// Packs one group's weights for the data gradient: w [o, kh, kw, gc] becomes [kh * kw * o, gc],
/// with the taps from the last to the first.
Buffer<float> pack_flipped_weights(const Conv2dShape& s, const float* w) {
  const int64_t o = s.group_o();
  const int64_t taps = s.kh * s.kw;
  const int64_t k = taps * o;
  Buffer<float> packed(k * packed_columns(s.group_c()));
  const int64_t panels = (s.group_c() + kPanelColumns - 1) / kPanelColumns;
  parallel_for(
      taps * panels, row_grain(kPanelColumns * o, kPackGrain), [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
          const int64_t tap = i / panels;
          const int64_t column = i % panels * kPanelColumns;
          float_table().pack_f32({k,
                                  tap * o,
                                  (tap + 1) * o,
                                  std::min(s.group_c() - column, kPanelColumns),
                                  w + (taps - 1 - tap) * s.group_c() + column,
                                  s.reduction(),
                                  1,
                                  packed.data() + column * k});
        }
      });
  return packed;
}

/// Puts the part with the most positions first. This part reads memory in order, and the other
/// parts then find its data in cache.
std::vector<AxisPart> most_first(std::vector<AxisPart> parts) {
  const auto most =
      std::max_element(parts.begin(), parts.end(), [](const AxisPart& a, const AxisPart& b) {
        return a.count < b.count;
      });
  if (most != parts.begin()) std::iter_swap(parts.begin(), most);
  return parts;
}

EpilogueF32 of_group(EpilogueF32 epilogue, int64_t first_column) {
  if (epilogue.bias != nullptr) epilogue.bias += first_column;
  return epilogue;
}

}  // namespace

PackedWeightsF32::PackedWeightsF32(const Conv2dShape& s, const float* w) {
  if (is_depthwise(s)) {
    data_ = taps_outermost(s, w);
    return;
  }
  const int64_t k = s.reduction();
  group_size_ = k * packed_columns(s.group_o());
  data_ = Buffer<float>(s.groups * group_size_);
  const int64_t panels = (s.group_o() + kPanelColumns - 1) / kPanelColumns;
  parallel_for(
      s.groups * panels, row_grain(kPanelColumns * k, kPackGrain), [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
          const int64_t group = i / panels;
          const int64_t column = i % panels * kPanelColumns;
          const int64_t columns = std::min(s.group_o() - column, kPanelColumns);
          float_table().pack_f32({k,
                                  0,
                                  k,
                                  columns,
                                  w + (group * s.group_o() + column) * k,
                                  1,
                                  k,
                                  data_.data() + group * group_size_ + column * k});
        }
      });
}

void conv2d_f32(
    const Conv2dShape& s, const float* x, const float* w, float* y, const EpilogueF32& epilogue) {
  if (s.y_elements() > 0) conv2d_f32(s, x, PackedWeightsF32(s, w), y, epilogue);
}

void conv2d_f32(const Conv2dShape& shape,
                const float* x,
                const PackedWeightsF32& w,
                float* y,
                const EpilogueF32& epilogue) {
  if (shape.y_elements() == 0) return;
  if (is_depthwise(shape)) return depthwise_f32(shape, x, w.data(0), y, epilogue);
  const Conv2dShape s = is_padded(shape) ? with_padding(shape) : shape;
  Correlation p{};
  p.padding = is_padded(shape) ? &shape : nullptr;
  p.n = s.n, p.h = s.h, p.w = s.w, p.pixel = s.c, p.channels = s.group_c();
  p.lines = most_first(forward_axis(vertical(s)));
  p.pixels = most_first(forward_axis(horizontal(s)));
  p.oh = s.oh(), p.ow = s.ow(), p.columns = s.group_o(), p.kh = s.kh, p.kw = s.kw;
  p.b_tap = p.channels;
  p.y_pixel = s.o;
  for (int64_t g = 0; g < s.groups; ++g) {
    p.x = x + g * s.group_c();
    p.b = w.data(g);
    p.y = y + g * s.group_o();
    correlate(p, of_group(epilogue, g * s.group_o()));
  }
}

void conv2d_backward_data_f32(const Conv2dShape& s,
                              const float* grad_y,
                              const float* w,
                              float* grad_x) {
  if (s.x_elements() == 0) return;
  if (is_depthwise(s)) return depthwise_backward_data_f32(s, grad_y, w, grad_x);
  Correlation p{};
  p.n = s.n, p.h = s.oh(), p.w = s.ow(), p.pixel = s.o, p.channels = s.group_o();
  p.lines = most_first(backward_axis(vertical(s)));
  p.pixels = most_first(backward_axis(horizontal(s)));
  p.oh = s.h, p.ow = s.w, p.columns = s.group_c(), p.kh = s.kh, p.kw = s.kw;
  p.y_pixel = s.c;
  const bool in_place = s.group_c() % 16 == 0 && s.n * s.h * s.w <= kFewPixels;
  p.b_step = in_place ? s.reduction() : 0;
  p.b_tap = in_place ? -s.group_c() : p.channels;
  for (int64_t g = 0; g < s.groups; ++g) {
    const float* const group_w = w + g * s.group_o() * s.reduction();
    Buffer<float> packed;
    if (!in_place) packed = pack_flipped_weights(s, group_w);
    p.x = grad_y + g * s.group_o();
    p.b = in_place ? group_w + s.reduction() - s.group_c() : packed.data();
    p.y = grad_x + g * s.group_c();
    correlate(p, {});
  }
}

}  // namespace quantrain::kernels
