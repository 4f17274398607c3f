#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "framework/kernels/integer/dot.hpp"
#include "framework/kernels/integer/integer.hpp"

// Lays out packed weights, gives them back, and computes what products need besides. packing.cpp
// packs them.
namespace quantrain::kernels {
namespace {

/// A linear layer is large if it has more weights than this. With 8 bits they take 2 MiB, as much
/// as the second-level cache of current processors or more.
constexpr int64_t kLargeWeights = int64_t{1} << 21;

/// Memory that is not rounded up, unlike the pool's, and aligned like it.
template <class T>
std::shared_ptr<T> exact_block(int64_t size) {
  constexpr std::align_val_t kAligned{pool::kAlignment};
  void* const block = ::operator new(static_cast<size_t>(size) * sizeof(T), kAligned);
  return {static_cast<T*>(block), [](T* p) { ::operator delete(p, kAligned); }};
}

/// Weight k of output o in a group of 4 (PanelLayout).
int8_t weight_of(const PanelLayout& layout, const int8_t* group, int64_t o, int64_t k) {
  if (!layout.planes && !layout.pairs) return group[4 * o + k];
  const int64_t planes = k * layout.width + o;
  const int64_t pairs = k % 2 * 2 * layout.width + 2 * o + k / 2;
  int16_t wide;
  std::memcpy(&wide, group + 2 * (layout.planes ? planes : pairs), 2);
  return static_cast<int8_t>(wide);
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

// Prefers panels of fields that the kernels take apart in registers. Takes panels that every call
// unpacks only if they are a tenth smaller, because panels for registers have one width, and may be
// largely empty.
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

int64_t PackedWeightsS8::padded_entries() const {
  const int64_t last = depthwise_
                           ? (panels_ - 1) * layout_.width
                           : shape_.o - shape_.group_o() + (panels_per_group_ - 1) * layout_.width;
  return last + round_up(layout_.width, 16);
}

// A sum of weights is their dot product with ones, so dot_u8s8 can compute it. dot_u8s8 subtracts
// the offset from each byte of x, so each byte is offset + 1.
Buffer<int32_t> PackedWeightsS8::sums() const {
  Buffer<int32_t> result(shape_.o);
  if (depthwise_) {
    // The groups of the first line of output have each weight once, and else zeros.
    const int64_t lines = DepthwiseLayout(shape_.kh, shape_.c).lines;
    for (int64_t o = 0; o < shape_.o; ++o) {
      const int8_t* const panel = data() + o / layout_.width * panel_bytes_;
      result[o] = 0;
      for (int64_t at = 0; at < panel_bytes_; at += lines * quad_bytes()) {
        for (int64_t k = 0; k < 4; ++k)
          result[o] += weight_of(layout_, panel + at, o % layout_.width, k);
      }
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
  if (layout_.few == FewBits::kBits) {
    const int64_t byte = k / shape_.c * bit_bytes(shape_.c) + k % shape_.c / 8;
    const int8_t signs = from[(row * quads_ + byte / 4) * quad_bytes() + 4 * column + byte % 4];
    return (signs >> k % shape_.c % 8 & 1) != 0 ? int8_t{1} : int8_t{-1};
  }
  if (layout_.octets) return from[(row * quads_ + k / 8 * 2) * quad_bytes() + 8 * column + k % 8];
  return weight_of(layout_, group, column, in_quad);
}

void PackedWeightsS8::leave_pool() {
  constexpr int64_t kLargePage = int64_t{1} << 21;
  const int64_t size = data_.size();
  if (size == 0 || (size >= kLargePage && !bits_.small)) return;
  const std::shared_ptr<int8_t> kept = exact_block<int8_t>(size + int64_t{pool::kSlack});
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

int64_t PackedWeightsS8::largest_sum(const int32_t* bias) const {
  int64_t largest = 0;
  for (int64_t o = 0; bias != nullptr && o < outputs(); ++o)
    largest = std::max(largest, std::abs(int64_t{bias[o]}));
  largest += shape_.reduction() * (int64_t{255} << (bits_.weights - 1));
  return std::min<int64_t>(largest, std::numeric_limits<int32_t>::max());
}

bool ProductParams::vanishes(const Multiplier& m, int64_t largest) {
  return m.m0 == 0 || (m.shift > kMostShift && m.m0 * largest < int64_t{1} << (m.shift - 1));
}

int64_t ProductParams::bytes(const PackedWeightsS8& w, bool requantizes) {
  return (requantizes ? 3 : 1) * w.padded_entries() * int64_t{sizeof(int32_t)};
}

ProductParams::ProductParams(const PackedWeightsS8& w,
                             int32_t zero_x,
                             const int32_t* bias,
                             const RequantizeU8* requantize)
    : zero_x_(zero_x),
      offset_(w.layout().offset),
      size_(w.padded_entries()),
      values_(exact_block<int32_t>((requantize != nullptr ? 3 : 1) * size_)) {
  const int64_t entries = w.entries();
  const Buffer<int32_t> sums = w.sums();
  int32_t* const start = values_.get();
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t o = i % w.outputs();
    const int64_t first = bias != nullptr ? bias[o] : 0;
    start[i] = first_sum(first, zero_x - offset_, sums[o]);
  }
  std::fill(start + entries, start + size_, 0);
  if (requantize == nullptr) return;
  const int64_t largest = w.largest_sum(bias);
  int32_t* const m0 = start + size_;
  int32_t* const shift = m0 + size_;
  std::fill(m0, shift, 0);
  std::fill(shift, shift + size_, kAnyShift);
  for (int64_t i = 0; i < entries; ++i) {
    const Multiplier m{requantize->m0[i % w.outputs()], requantize->shift[i % w.outputs()]};
    if (vanishes(m, largest)) continue;
    m0[i] = m.m0;
    shift[i] = m.shift;
  }
  requantize_ = *requantize;
  requantize_.m0 = m0;
  requantize_.shift = shift;
  set_usual(size_, largest, requantize_);
}

// The start values are biases for a zero point of offset_. Their bound of the sums is looser, so
// what follows from the bound is copied.
const ProductParams& ProductParams::for_weights(const PackedWeightsS8& w,
                                                ProductParams& copy) const {
  if (w.layout().offset == offset_ && w.padded_entries() <= size_) return *this;
  copy = ProductParams(w, offset_, start(0), requantize_.m0 != nullptr ? &requantize_ : nullptr);
  copy.zero_x_ = zero_x_;
  copy.requantize_.usual = requantize_.usual;
  copy.requantize_.left = requantize_.left;
  return copy;
}

}  // namespace quantrain::kernels
