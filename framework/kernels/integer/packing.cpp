#include <algorithm>
#include <cstring>
#include <new>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "framework/kernels/integer/dot.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::kernels {
namespace {

/// Writes four weights of output o to their places in `group`, which holds four weights of each
/// output of a panel (PanelLayout).
void put_quad(const PanelLayout& layout, const int8_t* quad, int64_t o, int8_t* group) {
  if (layout.planes) {
    for (int64_t k = 0; k < 4; ++k) {
      const int16_t weight = quad[k];
      std::memcpy(group + 2 * (k * layout.width + o), &weight, 2);
    }
    return;
  }
  int8_t* const to = group + 4 * o;
  if (!layout.pairs) {
    std::memcpy(to, quad, 4);
    return;
  }
  const int16_t even[2] = {quad[0], quad[2]};
  const int16_t odd[2] = {quad[1], quad[3]};
  std::memcpy(to, even, 4);
  std::memcpy(to + 4 * layout.width, odd, 4);
}

/// Widens words of four weights to int16: first weights 0 and 2 of all words, then weights 1 and 3
/// of all words. Each word is given as two numbers of 16 bits, with the weight of the lower index
/// in the low byte.
void widen_words(int64_t words, const int16_t* halves, int8_t* to) {
  int16_t even[2 * kWidestPanel];
  int16_t odd[2 * kWidestPanel];
  for (int64_t i = 0; i < 2 * words; ++i) {
    even[i] = static_cast<int8_t>(halves[i]);
    odd[i] = static_cast<int16_t>(halves[i] >> 8);
  }
  const auto bytes = static_cast<size_t>(4 * words);
  std::memcpy(to, even, bytes);
  std::memcpy(to + bytes, odd, bytes);
}

constexpr int8_t kNoWeights[4] = {};

/// A linear layer is large if it has more weights than this. With 8 bits they take 2 MiB, as much
/// as the second-level cache of current processors or more.
constexpr int64_t kLargeWeights = int64_t{1} << 21;

/// Memory that is not rounded up, unlike the pool's; otherwise like a block of the pool.
template <class T>
std::shared_ptr<T> exact_block(int64_t size) {
  constexpr std::align_val_t kAligned{pool::kAlignment};
  void* const block =
      ::operator new(static_cast<size_t>(size) * sizeof(T) + pool::kSlack, kAligned);
  return {static_cast<T*>(block), [](T* p) { ::operator delete(p, kAligned); }};
}

/// The value that a sum starts with. By docs/quantization.md (7), a complete sum fits in 32 bits.
/// This value may not fit if kernels subtract an offset. Then it wraps around, and the sum wraps
/// back.
int32_t first_sum(int64_t bias, int32_t zero_x, int32_t sum_w) {
  return static_cast<int32_t>(bias - int64_t{zero_x} * sum_w);
}

}  // namespace

PackedWeightsS8::PackedWeightsS8(int64_t o, int64_t k, const int8_t* w, ProductBits bits)
    : PackedWeightsS8(Conv2dShape{.c = k, .o = o}, w, bits) {}

PackedWeightsS8::PackedWeightsS8(const Conv2dShape& shape, const int8_t* w, ProductBits bits)
    : shape_(shape), bits_(bits), isa_(chosen_isa()), depthwise_(is_depthwise(shape)) {
  lay_out();
  data_ = Buffer<int8_t>(panels_ * panel_bytes_);
  if (depthwise_) {
    pack_depthwise(w);
  } else if (layout_.few == FewBits::kBits) {
    const Buffer<int8_t> signs = packed_signs(shape_, w);
    pack_panels(signs.data());
  } else {
    pack_panels(w);
  }
}

// Whether products of few rows wait for weights, because the cache does not hold them.
bool PackedWeightsS8::is_large() const {
  return bits_.kept && shape_.kh == 1 && shape_.kw == 1 && shape_.groups == 1 && shape_.h == 1 &&
         shape_.w == 1 && shape_.padded_h() == 1 && shape_.padded_w() == 1 &&
         shape_.weight_elements() > kLargeWeights;
}

void PackedWeightsS8::lay_out() {
  ProductNeeds needs{.outputs = shape_.group_o(), .terms = shape_.kw * shape_.group_c()};
  if (!depthwise_) {
    needs.weight_bits = bits_.weights;
    // Each tap takes whole bytes. With very few channels, most of their bits would be empty.
    needs.binary = bits_.binary && shape_.groups == 1 && 4 * bit_bytes(shape_.c) <= shape_.c;
    needs.large = is_large();
    needs.rows = shape_.n;
  }
  choose_layout(needs);
  entries_ = shape_.o;
  if (depthwise_) {
    layout_.planes = false;
    layout_.octets = false;
    const DepthwiseLayout windows(shape_.kh, shape_.c);
    entries_ = windows.run;
    panels_ = (windows.run + layout_.width - 1) / layout_.width;
    panel_bytes_ = windows.quads * shape_.kw * windows.lines * layout_.quad_bytes();
  }
}

// Panels of fields that the kernels take apart in registers are preferred to those that every call
// unpacks, unless they are a tenth larger, because they fill whole panels.
void PackedWeightsS8::choose_layout(ProductNeeds needs) {
  const IntegerTable& kernels = integer_table(isa_);
  kernels.panel_layout_u8s8(needs, &layout_);
  count_panels();
  if (depthwise_ || !bits_.small || bits_.weights > 4 || layout_.few == FewBits::kBits) return;
  const auto take_smaller = [&](const PanelLayout& layout, int64_t weight) {
    const PanelLayout before = layout_;
    const int64_t bytes = panels_ * panel_bytes_;
    layout_ = layout;
    count_panels();
    if (weight * panels_ * panel_bytes_ / 10 < bytes) return;
    layout_ = before;
    count_panels();
  };
  PanelLayout other{1, false};
  needs.small = true;
  kernels.panel_layout_u8s8(needs, &other);
  if (other.per_byte() > 1 || other.few == FewBits::kBits) take_smaller(other, 10);
  needs = {.outputs = needs.outputs, .terms = needs.terms};
  kernels.panel_layout_u8s8(needs, &other);
  other.octets = false;
  other.few = fields_of(bits_.weights);
  take_smaller(other, layout_.few == FewBits::kNone || layout_.few == FewBits::kNarrow ? 10 : 11);
}

void PackedWeightsS8::count_panels() {
  const int64_t outputs = shape_.group_o();
  const bool bits = layout_.few == FewBits::kBits;
  length_ = shape_.kw * (bits ? bit_bytes(shape_.c) : shape_.group_c());
  quads_ = (length_ + 3) / 4;
  layout_.octets = layout_.octets && quads_ > 1;  // a group of 8 for one quad would be half empty
  const bool pairs_of_quads = layout_.octets || layout_.few == FewBits::kNarrow;
  quads_ = round_up(quads_, pairs_of_quads ? 2 : layout_.per_byte());
  panels_per_group_ = (outputs + layout_.width - 1) / layout_.width;
  panels_ = shape_.groups * panels_per_group_;
  panel_bytes_ = shape_.kh * quads_ * layout_.quad_bytes() / layout_.per_byte();
}

PackedWeightsS8 PackedWeightsS8::planned(const Conv2dShape& shape, ProductBits bits) {
  PackedWeightsS8 w;
  w.shape_ = shape;
  w.bits_ = bits;
  w.isa_ = chosen_isa();
  w.depthwise_ = is_depthwise(shape);
  w.lay_out();
  return w;
}

int64_t PackedWeightsS8::bytes(const Conv2dShape& shape, ProductBits bits) {
  const PackedWeightsS8 w = planned(shape, bits);
  return w.panels_ * w.panel_bytes_;
}

void PackedWeightsS8::pack_panels(const int8_t* w) {
  parallel_for(panels_,
               std::max<int64_t>(1, 16384 / std::max<int64_t>(panel_bytes_, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t panel = begin; panel < end; ++panel) pack_panel(panel, w);
               });
}

void PackedWeightsS8::pack_panel(int64_t panel, const int8_t* w) {
  const int64_t outputs = shape_.group_o();
  const int64_t length = length_;
  int8_t* const to = data_.data() + panel * panel_bytes_;
  const int64_t first = panel % panels_per_group_ * layout_.width;
  const int64_t count = std::min(layout_.width, outputs - first);
  if (count < layout_.width) std::memset(to, 0, static_cast<size_t>(panel_bytes_));
  const int8_t* const rows = w + (panel / panels_per_group_ * outputs + first) * shape_.kh * length;
  // If no group of 4 needs padding, the four weights of one output are a word of 32 bits. Without
  // planes and octets, each segment of the panel is then a transposed matrix of words, widened to
  // int16 for pairs.
  const bool words = !layout_.planes && !layout_.octets && length == 4 * quads_;
  for (int64_t segment = 0; segment < shape_.kh; ++segment) {
    const int8_t* const from = rows + segment * length;
    int8_t* const segment_to = to + segment * (panel_bytes_ / shape_.kh);
    if (layout_.per_byte() > 1) {
      pack_fields(count, from, segment_to);
    } else if (layout_.octets) {
      pack_octets(count, from, segment_to);
    } else if (words && layout_.pairs) {
      pack_words_as_pairs(count, from, segment_to);
    } else if (words) {
      integer_table(isa_).transpose_u32(
          count, quads_, from, shape_.kh * quads_, segment_to, layout_.width);
    } else {
      pack_segment(count, from, segment_to);
    }
  }
}

void PackedWeightsS8::pack_words_as_pairs(int64_t count, const int8_t* rows, int8_t* to) const {
  constexpr int64_t kQuads = 16;  // a block of transposed words stays in the first-level cache
  int16_t words[kQuads * 2 * kWidestPanel] = {};
  const int64_t width = layout_.width;
  for (int64_t q = 0; q < quads_; q += kQuads) {
    const int64_t quads = std::min(kQuads, quads_ - q);
    integer_table(isa_).transpose_u32(count, quads, rows + 4 * q, shape_.kh * quads_, words, width);
    for (int64_t i = 0; i < quads; ++i)
      widen_words(width, words + i * 2 * width, to + (q + i) * quad_bytes());
  }
}

void PackedWeightsS8::pack_segment(int64_t count, const int8_t* rows, int8_t* to) const {
  const int64_t length = length_;
  // Packs kQuads groups of 4 of every output before it packs the next kQuads groups, so that their
  // destination stays in the first-level cache.
  constexpr int64_t kQuads = 16;
  const int64_t quad_step = quad_bytes();
  for (int64_t q = 0; q < quads_; q += kQuads) {
    for (int64_t o = 0; o < count; ++o) {
      const int8_t* const from = rows + o * shape_.kh * length;
      int8_t* at = to + q * quad_step;
      const int64_t end = std::min(length, 4 * (q + kQuads));
      int64_t j = 4 * q;
      for (; j + 4 <= end; j += 4, at += quad_step) put_quad(layout_, from + j, o, at);
      if (j < end) {
        int8_t last[4] = {};
        std::copy(from + j, from + end, last);
        put_quad(layout_, last, o, at);
        j += 4;
        at += quad_step;
      }
      // An even number of groups may have a last group without weights.
      for (; j < 4 * std::min(quads_, q + kQuads); j += 4, at += quad_step) {
        put_quad(layout_, kNoWeights, o, at);
      }
    }
  }
}

void PackedWeightsS8::pack_octets(int64_t count, const int8_t* rows, int8_t* to) const {
  const int64_t length = shape_.kw * shape_.group_c();
  const int64_t whole = length / 8 * 8;
  for (int64_t j = 0; j < whole; j += 8, to += 2 * quad_bytes()) {
    for (int64_t o = 0; o < count; ++o)
      std::memcpy(to + 8 * o, rows + o * shape_.kh * length + j, 8);
  }
  if (whole == length) return;
  for (int64_t o = 0; o < count; ++o) {
    int8_t last[8] = {};
    const int8_t* const row = rows + o * shape_.kh * length;
    std::copy(row + whole, row + length, last);
    std::memcpy(to + 8 * o, last, 8);
  }
}

void PackedWeightsS8::pack_depthwise(const int8_t* w) {
  const DepthwiseLayout windows(shape_.kh, shape_.c);
  const int64_t taps = shape_.kh * shape_.kw;
  std::fill(data_.begin(), data_.end(), int8_t{0});
  for (int64_t element = 0; element < windows.run; ++element) {
    const int8_t* const from = w + element % shape_.c * taps;
    int8_t* to = data_.data() + element / layout_.width * panel_bytes_;
    for (int64_t quad = 0; quad < windows.quads; ++quad) {
      for (int64_t j = 0; j < shape_.kw; ++j) {
        for (int64_t line = 0; line < windows.lines; ++line, to += quad_bytes()) {
          int8_t rows[4];
          for (int64_t k = 0; k < 4; ++k) {
            const int64_t i = 4 * quad + k - line;
            rows[k] = i >= 0 && i < shape_.kh ? from[i * shape_.kw + j] : int8_t{0};
          }
          put_quad(layout_, rows, element % layout_.width, to);
        }
      }
    }
  }
}

// A sum of weights is their dot product with ones, so dot_u8s8 can compute it. dot_u8s8 subtracts
// the offset from each byte of x, so each byte is offset + 1.
Buffer<int32_t> PackedWeightsS8::sums() const {
  Buffer<int32_t> result(shape_.o);
  if (depthwise_) {
    for (int64_t o = 0; o < shape_.o; ++o) {
      result[o] = 0;
      for (int64_t i = 0; i < shape_.kh * shape_.kw; ++i)
        result[o] += weight(o, i / shape_.kw, i % shape_.kw);
    }
    return result;
  }
  const int64_t outputs = shape_.group_o();
  const int64_t width = panels_per_group_ * layout_.width;
  Buffer<uint8_t> ones(shape_.kh * quads_ * 4);
  Buffer<int32_t> start(width);
  std::fill(ones.begin(), ones.end(), static_cast<uint8_t>(layout_.offset + 1));
  std::fill(start.begin(), start.end(), 0);
  if (layout_.few == FewBits::kBits) {
    // Unused bits of a tap's last byte are no terms.
    for (int64_t i = 0; i < ones.size(); ++i) {
      const int64_t used = shape_.c - i % (4 * quads_) % bit_bytes(shape_.c) * 8;
      ones[i] = static_cast<uint8_t>(used >= 8 ? 255 : (1 << used) - 1);
    }
  }
  const uint8_t* const row = ones.data();
  DotU8S8 p{};
  p.rows = 1;
  p.outputs = outputs;
  p.segments = shape_.kh;
  p.segment_step = quads_ * 4;
  p.quads = quads_;
  p.x = &row;
  p.panel = panel_bytes_;
  p.layout = layout_;
  p.start = start.data();
  p.stride = outputs;
  p.terms = length_;
  for (int64_t group = 0; group < shape_.groups; ++group) {
    p.w = data() + group * panels_per_group_ * panel_bytes_;
    p.acc = result.data() + group * outputs;
    dot_u8s8(integer_table(isa_), p);
  }
  return result;
}

const PackedWeightsS8& PackedWeightsS8::for_chosen_isa(PackedWeightsS8& copy) const {
  if (isa_ == chosen_isa()) return *this;
  Buffer<int8_t> w(shape_.o * shape_.reduction());
  unpack(0, w.size(), w.data());
  copy = PackedWeightsS8(shape_, w.data(), bits_);
  return copy;
}

// Weight k of a row of output o's kernel; the row has kw * group_c() weights. The inverse of
// put_quad(), and of how pack_panel() and pack_depthwise() place groups.
int8_t PackedWeightsS8::weight(int64_t o, int64_t row, int64_t k) const {
  const int64_t outputs = shape_.group_o();
  const int64_t lane = depthwise_ ? o : o % outputs;
  const int64_t panel = (depthwise_ ? 0 : o / outputs * panels_per_group_) + lane / layout_.width;
  const int64_t column = lane % layout_.width;
  const int8_t* const from = data() + panel * panel_bytes_;
  int64_t quad = row * quads_ + k / 4;
  int64_t in_quad = k % 4;
  if (depthwise_) {
    quad = (row / 4 * shape_.kw + k) * DepthwiseLayout(shape_.kh, shape_.c).lines;
    in_quad = row % 4;
  }
  if (const int64_t fields = layout_.per_byte(); fields > 1) {
    const int64_t step = row * (quads_ / fields) + k / (4 * fields);
    const auto byte = static_cast<uint8_t>(from[step * quad_bytes() + 4 * column + k % 4]);
    const int64_t width = 8 / fields;
    const int field = byte >> k / 4 % fields * width & ((1 << width) - 1);
    return static_cast<int8_t>((fields == 8 ? 2 * field : field) - layout_.raised());
  }
  const int8_t* const group = from + quad * quad_bytes();
  if (layout_.planes || layout_.pairs) {
    const int64_t planes = in_quad * layout_.width + column;
    const int64_t pairs = in_quad % 2 * 2 * layout_.width + 2 * column + in_quad / 2;
    int16_t wide;
    std::memcpy(&wide, group + 2 * (layout_.planes ? planes : pairs), 2);
    return static_cast<int8_t>(wide);
  }
  if (layout_.few == FewBits::kBits) {
    const int64_t byte = k / shape_.c * bit_bytes(shape_.c) + k % shape_.c / 8;
    const int8_t signs = from[(row * quads_ + byte / 4) * quad_bytes() + 4 * column + byte % 4];
    return (signs >> k % shape_.c % 8 & 1) != 0 ? int8_t{1} : int8_t{-1};
  }
  if (layout_.octets) return from[(row * quads_ + k / 8 * 2) * quad_bytes() + 8 * column + k % 8];
  return group[4 * column + in_quad];
}

void PackedWeightsS8::leave_pool() {
  constexpr int64_t kLargePage = int64_t{1} << 21;
  const int64_t size = data_.size();
  if (size == 0 || (size >= kLargePage && !bits_.small)) return;
  const std::shared_ptr<int8_t> kept = exact_block<int8_t>(size);
  std::copy(data_.begin(), data_.end(), kept.get());
  kept_ = kept;
  data_ = Buffer<int8_t>();
}

void PackedWeightsS8::unpack(int64_t first, int64_t count, int8_t* to) const {
  const int64_t length = shape_.kw * shape_.group_c();
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t row = i / length;
    *to++ = weight(row / shape_.kh, row % shape_.kh, i % length);
  }
}

int64_t ProductParams::bytes(const Conv2dShape& shape, bool requantizes) {
  const int64_t size = PackedWeightsS8::planned(shape).entries() + kWidestPanel;
  return (requantizes ? 4 : 1) * size * int64_t{sizeof(int32_t)};
}

ProductParams::ProductParams(const PackedWeightsS8& w,
                             int32_t zero_x,
                             const int32_t* bias,
                             const RequantizeU8* requantize)
    : zero_x_(zero_x), offset_(w.layout().offset) {
  const int64_t entries = w.entries();
  const int64_t size = entries + kWidestPanel;
  const Buffer<int32_t> sums = w.sums();
  size_ = (requantize != nullptr ? 4 : 1) * size;
  values_ = exact_block<int32_t>(size_);
  int32_t* const start = values_.get();
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t o = i % w.outputs();
    const int64_t first = bias != nullptr ? bias[o] : 0;
    start[i] = first_sum(first, zero_x - offset_, sums[o]);
  }
  std::fill(start + entries, start + size, 0);
  if (requantize == nullptr) return;
  int32_t* const m0 = start + size;
  int32_t* const shift = m0 + size;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t o = i % w.outputs();
    m0[i] = i < entries ? requantize->m0[o] : 0;
    shift[i] = m0[i] != 0 ? requantize->shift[o] : kAnyShift;
  }
  requantize_ = *requantize;
  requantize_.m0 = m0;
  requantize_.shift = shift;
  fill_rounds(size, requantize_, shift + size);
}

const ProductParams& ProductParams::for_weights(const PackedWeightsS8& w,
                                                ProductParams& copy) const {
  const int32_t offset = w.layout().offset;
  if (offset == offset_) return *this;
  copy.zero_x_ = zero_x_;
  copy.offset_ = offset;
  copy.size_ = size_;
  copy.values_ = exact_block<int32_t>(size_);
  const Buffer<int32_t> sums = w.sums();
  std::copy_n(values_.get(), size_, copy.values_.get());
  for (int64_t i = 0; i < w.entries(); ++i) {
    int32_t& start = copy.values_.get()[i];
    start = first_sum(start, offset_ - offset, sums[i % w.outputs()]);
  }
  copy.requantize_ = requantize_;
  for (const int32_t** array :
       {&copy.requantize_.m0, &copy.requantize_.shift, &copy.requantize_.round}) {
    if (*array != nullptr) *array = copy.values_.get() + (*array - values_.get());
  }
  return copy;
}

}  // namespace quantrain::kernels
