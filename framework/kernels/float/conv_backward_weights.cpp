#include <algorithm>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/float/conv.hpp"
#include "framework/kernels/float/conv_axis.hpp"
#include "framework/kernels/float/depthwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/partial_sums.hpp"
#include "framework/kernels/float/tiles.hpp"

// Like the convolution itself, the weight gradient is computed by matrix products. The gradient's
// rows are the elements (u, v, c) of the convolution's kernel, and its columns are the output
// channels. The sum for an element runs over all output pixels at which the element reads inside
// the image. So each pair of an AxisPart of lines and an AxisPart of pixels (conv_axis.hpp) adds a
// matrix product, which reads the image without im2col. The output lines are split into chunks,
// whose size depends on the problem size alone. Each chunk is summed separately, and a fixed tree
// adds up the chunks. Within a chunk, each block of pixels is summed in one chain, and the blocks
// are added up one after the other.
namespace quantrain::kernels {
namespace {

constexpr int64_t kMostTasks = 16;
constexpr int64_t kTaskWork = 250000;          // the fewest multiply-adds that a task should have
constexpr int64_t kChunkPixels = 768;          // fewer would make adding up the chunks costly
constexpr int64_t kMostPartialSums = 4 << 20;  // in all chunks; kLongestChunk may force more
constexpr int64_t kLongestChunk = 32768;       // pixels; limits the chain that adds up the blocks
// A segment has at most kLongestChain pixels. A block is full when its segments reach a target
// number of pixels, or when it has kMostSegments segments. With up to kTileRows rows, the target is
// kLongestChain pixels. With more rows it is kBlockPixels, so that a panel of grad_y stays in the
// first-level cache.
constexpr int64_t kLongestChain = 768;
constexpr int64_t kBlockPixels = 128;
constexpr int64_t kTileRows = 9;  // for at most this many rows, blocks of kLongestChain are faster
constexpr int64_t kMostSegments = 256;
constexpr int64_t kFewestRows = 16;  // fewer rows of a tap would not be worth reading grad_y again
static_assert(kFewestRows > kTileRows);
// With at least this many channels, one tap fills a tile. Shorter runs of neighbouring rows are not
// worth a tile of their own.
constexpr int64_t kManyChannels = 8;

struct WeightsGradient {
  Conv2dShape s;
  std::vector<AxisPart> lines, pixels;
  const float* x;         // points to the group's first channel
  const CodeView* codes;  // used instead of x if not null; then there is one group
  const float* grad_y;    // each pixel can be read in whole vectors
  int64_t grad_pixel;
  int64_t width;  // elements of a row of sums
};

/// Computes rows [row, row_end) of a group's gradient, summed over output lines [begin, end).
class Chunk {
 public:
  Chunk(const WeightsGradient& p,
        int64_t begin,
        int64_t end,
        int64_t row,
        int64_t row_end,
        float* sums)
      : p_(p), s_(p.s), begin_(begin), end_(end), row_(row), row_end_(row_end), sums_(sums) {
    tiles_.segment = segments_;
    tiles_.accumulate = true;
    tiles_.lo = -__builtin_inff();
    tiles_.hi = __builtin_inff();
  }

  void sum() {
    if (p_.codes != nullptr) make_floats();
    std::fill(sums_ + row_ * p_.width, sums_ + row_end_ * p_.width, 0.0f);
    for (const AxisPart& lines : p_.lines) {
      for (const AxisPart& pixels : p_.pixels) {
        find_rows(lines, pixels);
        if (rows_ > 0) sum_part(lines, pixels);
      }
    }
  }

 private:
  /// Dequantizes the lines of x that the chunk reads, with all channels.
  void make_floats() {
    const auto seen = [&](int64_t line, int64_t tap) {
      const int64_t at = line % oh_ * s_.stride_h - s_.pad_h + tap;
      return (line / oh_ * s_.h + std::clamp<int64_t>(at, 0, s_.h)) * s_.w * s_.c;
    };
    first_ = seen(begin_, 0);
    made_ = Buffer<float>(seen(end_ - 1, s_.window_h()) - first_);
    p_.codes->to_float(0, first_, made_.size(), made_.data());
  }

  /// Lists the rows of a pair of parts. Each row is a kernel element that belongs to one of the
  /// pair's taps. from_ gets the address at which the pair's first output pixel reads the element,
  /// and to_ the address of its sums.
  void find_rows(const AxisPart& lines, const AxisPart& pixels) {
    const int64_t c = s_.group_c();
    const float* const x =
        (p_.codes != nullptr ? made_.data() : p_.x) + (lines.source * s_.w + pixels.source) * s_.c;
    // Taps that read contiguous elements count as one tap.
    const bool contiguous = c == s_.c && pixels.tap_source == 1;
    const int64_t taps = contiguous ? std::min<int64_t>(1, pixels.taps) : pixels.taps;
    const int64_t elements = contiguous ? pixels.taps * c : c;
    const float** from = from_.data();
    float** to = to_.data();
    for (int64_t u = 0; u < lines.taps; ++u) {
      for (int64_t v = 0; v < taps; ++v) {
        const int64_t row = ((lines.first_tap + u) * s_.kw + pixels.first_tap + v) * c;
        const int64_t end = std::min(elements, row_end_ - row);
        for (int64_t i = std::max<int64_t>(0, row_ - row); i < end; ++i) {
          *from++ = x + (u * lines.tap_source * s_.w + v * pixels.tap_source) * s_.c + i;
          *to++ = sums_ + (row + i) * p_.width;
        }
      }
    }
    rows_ = from - from_.data();
    set_rows();
  }

  /// Hands the kernel the listed rows. If they form runs of neighbouring elements, the kernel needs
  /// no list, and its tiles may have more rows.
  void set_rows() {
    const int64_t m = run_length();
    tiles_.m = m > 0 ? m : rows_;
    tiles_.runs = m > 0 ? rows_ / m : 1;
    tiles_.a = {from_.data(), nullptr, 0, 0};
    tiles_.c = {to_.data(), nullptr, 0, 0};
    if (m == 0) return;
    const int64_t second = rows_ > m ? m : 0;
    tiles_.a = {nullptr, from_[0], 1, from_[second] - from_[0]};
    tiles_.c = {nullptr, to_[0], p_.width, to_[second] - to_[0]};
  }

  /// The length of the runs of neighbouring elements that the listed rows consist of. All runs have
  /// this length, and their sources and sums are equally far apart. Returns 0 if there are no such
  /// runs, or if they are too short for a tile.
  int64_t run_length() const {
    const auto follows = [&](int64_t i, int64_t j, int64_t from, int64_t to) {
      return from_[j] - from_[i] == from && to_[j] - to_[i] == to;
    };
    int64_t m = 1;
    while (m < rows_ && follows(m - 1, m, 1, p_.width)) ++m;
    if (m == rows_) return m;
    if (m < kManyChannels || rows_ % m != 0) return 0;
    const int64_t from = from_[m] - from_[0];
    const int64_t to = to_[m] - to_[0];
    for (int64_t i = m; i < rows_; ++i) {
      if (i % m == 0 ? !follows(i - m, i, from, to) : !follows(i - 1, i, 1, p_.width)) return 0;
    }
    return m;
  }

  /// Sums a pair of parts over all images of the chunk. In an image, the pair's pixels form a
  /// rectangle. Segments run along its longer side.
  void sum_part(const AxisPart& lines, const AxisPart& pixels) {
    const int64_t x_step = pixels.source_step * s_.c;
    const int64_t x_line = lines.source_step * s_.w * s_.c;
    const int64_t y_line = ow_ * p_.grad_pixel;
    const int64_t x_image = s_.h * s_.w * s_.c;
    const int64_t image = begin_ / oh_;
    int64_t line = image * oh_ + lines.result;
    SegmentF32 at{image * x_image - first_, line * y_line + pixels.result * p_.grad_pixel};
    tiles_.length = 0;
    for (; line < end_; line += oh_, at.a += x_image, at.b += oh_ * y_line) {
      const int64_t first = std::max<int64_t>(0, begin_ - line);
      const int64_t count = std::min(lines.count, end_ - line) - first;
      if (count <= 0) continue;
      const SegmentF32 from{at.a + first * x_line, at.b + first * y_line};
      if (pixels.count >= count) {
        add_lines(count, from, {x_line, y_line}, pixels.count, {x_step, p_.grad_pixel});
      } else {
        add_lines(pixels.count, from, {x_step, p_.grad_pixel}, count, {x_line, y_line});
      }
    }
    flush();
  }

  /// Appends `count` segments of `length` pixels to segments_. They begin at `first` and are `step`
  /// apart. Segments that are too long for one chain are appended in pieces.
  void add_lines(
      int64_t count, SegmentF32 first, SegmentF32 step, int64_t length, SegmentF32 pixel_step) {
    for (int64_t begin = 0; begin < length; begin += kLongestChain) {
      set_steps(std::min(kLongestChain, length - begin), pixel_step.a, pixel_step.b);
      add_segments(count, {first.a + begin * pixel_step.a, first.b + begin * pixel_step.b}, step);
    }
  }

  void set_steps(int64_t length, int64_t a_step, int64_t b_step) {
    if (length == tiles_.length && a_step == tiles_.a_step && b_step == tiles_.b_step) return;
    flush();
    tiles_.length = length;
    tiles_.a_step = a_step;
    tiles_.b_step = b_step;
    const int64_t pixels = rows_ > kTileRows ? kBlockPixels : kLongestChain;
    most_segments_ = std::min(kMostSegments, (pixels - 1) / length + 1);
  }

  /// Appends `count` segments to segments_. They begin at `first` and are `step` apart. Sums the
  /// segments whenever a block is full.
  void add_segments(int64_t count, SegmentF32 first, SegmentF32 step) {
    while (count > 0) {
      const int64_t n = std::min(count, most_segments_ - tiles_.segments);
      SegmentF32* const to = segments_ + tiles_.segments;
      for (int64_t i = 0; i < n; ++i) {
        to[i] = first;
        first.a += step.a;
        first.b += step.b;
      }
      count -= n;
      tiles_.segments += n;
      if (tiles_.segments == most_segments_) flush();
    }
  }

  void flush() {
    if (tiles_.segments == 0) return;
    for (int64_t column = 0; column < p_.width; column += kPanelColumns) {
      tiles_.n = std::min(p_.width - column, kPanelColumns);
      tiles_.b = p_.grad_y + column;
      tiles_.column = column;
      kernel_(tiles_);
    }
    tiles_.segments = 0;
  }

  const WeightsGradient& p_;
  const Conv2dShape& s_;
  const int64_t oh_ = s_.oh();
  const int64_t ow_ = s_.ow();
  int64_t begin_, end_, row_, row_end_;
  float* sums_;
  int64_t first_ = 0;  // the element of x whose float is made_[0]
  Buffer<float> made_;
  void (*kernel_)(const TilesF32&) = float_table().tiles_f32;
  Buffer<const float*> from_{row_end_ - row_};
  Buffer<float*> to_{row_end_ - row_};
  int64_t rows_ = 0;  // how many rows from_ and to_ list
  int64_t most_segments_ = 0;
  SegmentF32 segments_[kMostSegments];
  TilesF32 tiles_{};
};

/// Output lines of a chunk. Each chunk is summed separately.
int64_t chunk_lines(const Conv2dShape& s, int64_t sums) {
  const int64_t lines = s.n * s.oh();
  const int64_t pixels = lines * s.ow();
  const int64_t most =
      std::min({pixels * sums / kTaskWork, pixels / kChunkPixels, kMostPartialSums / sums});
  const int64_t tasks = std::clamp<int64_t>(most, 1, kMostTasks);
  const int64_t chunks = std::min(lines, std::max(tasks, (pixels - 1) / kLongestChunk + 1));
  return (lines + chunks - 1) / chunks;
}

/// Rows that a task computes. If there are few chunks, the rows of each chunk are split into parts
/// of whole taps, channels of a tap or whole tiles. No split by the number of threads changes a
/// sum: set_steps() sees more than kTileRows rows with each.
int64_t part_rows(const Conv2dShape& s, int64_t sums, int64_t chunks) {
  const int64_t c = s.group_c();
  const bool splits_taps = c >= 2 * kFewestRows;
  const int64_t tasks = std::clamp<int64_t>(
      s.n * s.oh() * s.ow() * sums / kTaskWork, 1, splits_taps ? enough_tasks() : kMostTasks);
  const int64_t parts = (tasks + chunks - 1) / chunks;
  int64_t unit = c >= kManyChannels ? c : 24;
  if (splits_taps && threads() > 1) {
    while (s.reduction() / unit < parts && unit % 2 == 0 && unit >= 2 * kFewestRows) unit /= 2;
    if (unit < c) return unit;
  }
  return ((s.reduction() + parts - 1) / parts + unit - 1) / unit * unit;
}

/// One group's part of grad_y, with each pixel padded with zeros to whole vectors.
Buffer<float> fill_up(const Conv2dShape& s, const float* grad_y, int64_t width) {
  const int64_t pixels = s.n * s.oh() * s.ow();
  Buffer<float> filled(pixels * width);
  parallel_for(pixels, 65536 / width + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* const to = filled.data() + i * width;
      std::copy_n(grad_y + i * s.o, s.group_o(), to);
      std::fill(to + s.group_o(), to + width, 0.0f);
    }
  });
  return filled;
}

/// Splits the work into chunks of output lines, and each chunk into parts of the gradient's rows.
/// The chunks depend on the problem size alone. The parts may depend on the number of threads,
/// which changes no sum.
struct Cut {
  int64_t lines, chunk, chunks, part, parts;

  explicit Cut(const Conv2dShape& s) : lines(s.n * s.oh()) {
    const int64_t sums = s.reduction() * packed_columns(s.group_o());
    chunk = chunk_lines(s, sums);
    chunks = (lines + chunk - 1) / chunk;
    part = part_rows(s, sums, chunks);
    parts = (s.reduction() + part - 1) / part;
  }
};

/// Whether there is nothing to sum. If so, sets the gradient to 0.
bool is_empty(const Conv2dShape& s, float* grad_w) {
  const bool empty = s.weight_elements() == 0 || s.y_elements() == 0;
  if (empty) std::fill_n(grad_w, s.weight_elements(), 0.0f);
  return empty;
}

/// x is given as floats or as codes; the other pointer is null.
void backward_weights(const Conv2dShape& s,
                      const float* x,
                      const CodeView* codes,
                      const float* grad_y,
                      float* grad_w) {
  const Cut cut(s);
  const int64_t k = s.reduction();
  const int64_t o = s.group_o();
  const int64_t width = packed_columns(o);
  const int64_t sums = k * width;
  // With many channels, one tap fills a tile. So the parts come from forward_taps: a part has few
  // taps, and all results for which these taps lie inside the image, so its sums are long. With few
  // channels, a tile needs several taps. So the parts come from forward_axis: a part has all taps
  // that lie inside the image for its results.
  const auto axis = s.group_c() >= kManyChannels ? forward_taps : forward_axis;
  WeightsGradient p{};
  p.s = s;
  p.codes = codes;
  p.lines = axis(vertical(s));
  p.pixels = axis(horizontal(s));
  p.width = width;
  Buffer<float> partial(cut.chunks * sums);
  for (int64_t g = 0; g < s.groups; ++g) {
    Buffer<float> filled;
    p.x = x != nullptr ? x + g * s.group_c() : nullptr;
    p.grad_y = grad_y + g * o;
    p.grad_pixel = s.o;
    if (o != width) {
      filled = fill_up(s, p.grad_y, width);
      p.grad_y = filled.data();
      p.grad_pixel = width;
    }
    parallel_for(cut.chunks * cut.parts, 1, [&](int64_t task, int64_t) {
      const int64_t i = task / cut.parts;
      const int64_t row = task % cut.parts * cut.part;
      Chunk(p,
            i * cut.chunk,
            std::min(cut.lines, (i + 1) * cut.chunk),
            row,
            std::min(k, row + cut.part),
            partial.data() + i * sums)
          .sum();
    });
    // Adds up the chunks and transposes the sums. A block of rows is a whole number of cache lines
    // of the result.
    const int64_t rows = (kGrain / (width * cut.chunks) / 16 + 1) * 16;
    parallel_for(k, rows, [&](int64_t row, int64_t end) {
      add_up_part(cut.chunks, sums, partial.data(), row * width, end * width);
      float_table().transpose_f32(
          end - row, o, partial.data() + row * width, width, grad_w + g * o * k + row, k);
    });
  }
}

}  // namespace

void conv2d_backward_weights_f32(const Conv2dShape& s,
                                 const float* x,
                                 const float* grad_y,
                                 float* grad_w) {
  if (is_empty(s, grad_w)) return;
  if (is_depthwise(s)) return depthwise_backward_weights_f32(s, x, grad_y, grad_w);
  backward_weights(s, x, nullptr, grad_y, grad_w);
}

void conv2d_backward_weights_f32(const Conv2dShape& s,
                                 const CodeView& x,
                                 const float* grad_y,
                                 float* grad_w) {
  if (is_empty(s, grad_w)) return;
  if (s.groups == 1 && Cut(s).parts == 1) return backward_weights(s, nullptr, &x, grad_y, grad_w);
  // Here several tasks or groups read the same codes, so each code is dequantized once, in advance.
  Buffer<float> floats(s.x_elements());
  parallel_for(s.x_elements(), 65536, [&](int64_t begin, int64_t end) {
    x.to_float(0, begin, end - begin, floats.data() + begin);
  });
  conv2d_backward_weights_f32(s, floats.data(), grad_y, grad_w);
}

}  // namespace quantrain::kernels
