#include <algorithm>
#include <cstring>

#include "framework/core/parallel.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
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

}  // namespace

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

}  // namespace quantrain::kernels
