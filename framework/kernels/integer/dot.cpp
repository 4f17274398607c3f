#include "framework/kernels/integer/dot.hpp"

#include <algorithm>
#include <cstring>

#include "framework/core/buffer.hpp"
#include "framework/kernels/integer/channels.hpp"

namespace quantrain::kernels {
namespace {

int64_t quads_of(int64_t terms) { return (terms + 3) / 4; }

/// Signs that no weight has are unpacked to -1. Clears those from place `first` on in a group of 4.
void clear_absent(const PanelLayout& layout, int64_t first, int8_t* group) {
  for (int64_t k = first; k < 4; ++k) {
    for (int64_t o = 0; o < layout.width; ++o) {
      if (layout.planes) {
        std::memset(group + 2 * (k * layout.width + o), 0, 2);
      } else if (layout.pairs) {
        std::memset(group + k % 2 * 4 * layout.width + 4 * o + k / 2 * 2, 0, 2);
      } else {
        group[4 * o + k] = 0;
      }
    }
  }
}

/// Unpacks one panel of fields at a time, and multiplies by it.
void dot_unpacked(const IntegerTable& kernels, const DotU8S8& p) {
  DotU8S8 part = p;
  part.layout = p.layout.unpacked();
  part.quads = quads_of(p.terms);
  const int64_t width = p.layout.width;
  Buffer<int8_t> panel(unpacked_bytes(p.layout, p.segments, p.terms));
  part.w = panel.data();
  DotU8S8 packed = p;
  for (int64_t output = 0; output < p.outputs; output += width, packed.w += p.panel) {
    unpack_panels(kernels, packed, 1, panel.data());
    part.outputs = std::min(width, p.outputs - output);
    part.start = p.start + output;
    part.requantize = p.requantize.from(output);
    part.acc = p.acc == nullptr ? nullptr : p.acc + output;
    part.y = p.y == nullptr ? nullptr : p.y + output;
    dot_u8s8(kernels, part);
  }
}

}  // namespace

void unpack_panels(const IntegerTable& kernels, const DotU8S8& p, int64_t count, int8_t* to) {
  const PanelLayout layout = p.layout.unpacked();
  const int64_t quads = quads_of(p.terms);
  const int64_t packed = p.quads / p.layout.per_byte() * p.layout.quad_bytes();
  const bool has_absent = p.layout.few == FewBits::kEighths && p.terms % 4 != 0;
  for (int64_t panel = 0; panel < count; ++panel) {
    const int8_t* from = p.w + panel * p.panel;
    for (int64_t segment = 0; segment < p.segments; ++segment, from += packed) {
      kernels.unpack_fields_s8(quads, p.layout, from, to);
      to += quads * layout.quad_bytes();
      if (has_absent) clear_absent(layout, p.terms % 4, to - layout.quad_bytes());
    }
  }
}

int64_t unpacked_bytes(const PanelLayout& layout, int64_t segments, int64_t terms) {
  return segments * quads_of(terms) * layout.unpacked().quad_bytes();
}

int64_t dot_scratch(const PanelLayout& layout, int64_t rows, int64_t segments, int64_t terms) {
  if (layout.per_byte() == 1 || rows < layout.unpacks_from) return 0;
  return unpacked_bytes(layout, segments, terms);
}

// The table's kernel requantizes only if RequantizeU8::usual is set. It is not if sums are long and
// multipliers are 1/4 or more, or below 2^-24, or if both occur in one layer. In this case the
// function below lets the kernel store the sums of a few rows and one panel at a time, and
// requantizes these sums itself.
void dot_u8s8(const IntegerTable& kernels, const DotU8S8& p) {
  if (p.rows >= p.layout.unpacks_from && p.layout.per_byte() > 1) return dot_unpacked(kernels, p);
  if (p.acc != nullptr || p.requantize.usual) return kernels.dot_u8s8(p);
  constexpr int64_t kRows = 8;
  const int64_t width = p.layout.width;
  int32_t sums[kRows * kWidestPanel];
  for (int64_t output = 0; output < p.outputs; output += width) {
    const RequantizeU8 requantize = p.requantize.from(output);
    for (int64_t row = 0; row < p.rows; row += kRows) {
      DotU8S8 part = p;
      part.rows = std::min(kRows, p.rows - row);
      part.outputs = std::min(width, p.outputs - output);
      part.x = p.x + row;
      part.w = p.w + output / width * p.panel;
      part.start = p.start + output;
      part.acc = sums;
      part.y = nullptr;
      part.stride = width;
      kernels.dot_u8s8(part);
      for (int64_t r = 0; r < part.rows; ++r) {
        kernels.requantize_s32_u8(part.outputs,
                                  kWidestPanel,
                                  sums + r * width,
                                  requantize,
                                  p.y + (row + r) * p.stride + output,
                                  nullptr,
                                  0,
                                  0);
      }
    }
  }
}

}  // namespace quantrain::kernels
