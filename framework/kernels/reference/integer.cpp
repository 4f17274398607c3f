#include <algorithm>
#include <cmath>
#include <cstring>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/kernels/reference/reference.hpp"

namespace quantrain::kernels::reference {
namespace {

uint8_t code(int32_t sum, const RequantizeU8& r, int64_t channel) {
  const Multiplier multiplier{r.m0[channel], r.shift[channel]};
  return static_cast<uint8_t>(requantize(sum, multiplier, r.zero_point, r.lo, r.hi));
}

}  // namespace

void panel_layout_u8s8(const ProductNeeds&, PanelLayout* layout) {
  *layout = {.width = 1, .pairs = false};
}

void dot_u8s8(const DotU8S8& p) {
  const int64_t length = 4 * p.quads;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t o = 0; o < p.outputs; ++o) {
      int32_t sum = p.start[o];
      for (int64_t s = 0; s < p.segments; ++s) {
        const uint8_t* const x = p.x[row] + s * p.segment_step;
        const int8_t* const w = p.w + o * p.panel + s * length;
        for (int64_t j = 0; j < length; ++j) sum += w[j] * (x[j] - p.layout.offset);
      }
      if (p.acc != nullptr) p.acc[row * p.stride + o] = sum;
      if (p.y != nullptr) p.y[row * p.stride + o] = code(sum, p.requantize, o);
    }
  }
}

void depthwise_u8s8(const DepthwiseU8S8& p) {
  const PoolShape& s = p.pool;
  const DepthwiseLayout layout(s.kh, s.c);
  for (int64_t line = p.begin; line < p.end; ++line) {
    for (int64_t i = 0; i < s.ow * s.c; ++i) {
      const int64_t c = i % s.c;
      int32_t sum = p.start[c];
      for (int64_t kh = 0; kh < s.kh; ++kh) {
        for (int64_t kw = 0; kw < s.kw; ++kw) {
          const int64_t h = line % s.oh * s.stride_h - s.pad_h + kh * s.dilation_h;
          const int64_t w = i / s.c * s.stride_w - s.pad_w + kw * s.dilation_w;
          const bool inside = h >= 0 && h < s.h && w >= 0 && w < s.w;
          const int32_t x = inside ? p.x[((line / s.oh * s.h + h) * s.w + w) * s.c + c] : p.zero_x;
          const int64_t quad = (c * layout.quads + kh / 4) * s.kw + kw;
          sum += p.w[4 * quad * layout.lines + kh % 4] * (x - p.layout.offset);
        }
      }
      const int64_t to = line * s.ow * s.c + i;
      if (p.acc != nullptr) p.acc[to] = sum;
      if (p.y != nullptr) p.y[to] = code(sum, p.requantize, c);
    }
  }
}

void requantize_s32_u8(int64_t n,
                       int64_t period,
                       const int32_t* acc,
                       const RequantizeU8& r,
                       uint8_t* y,
                       uint8_t* mask,
                       int32_t mask_lo,
                       int32_t mask_hi) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t c = i % period;
    const int64_t code = rounding_shift(int64_t{acc[i]} * r.m0[c], r.shift[c]) + r.zero_point;
    y[i] = static_cast<uint8_t>(std::clamp<int64_t>(code, r.lo, r.hi));
    if (mask == nullptr) continue;
    if (i % 8 == 0) mask[i / 8] = 0;
    if (code >= mask_lo && code <= mask_hi) mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
  }
}

void dequantize_s32_f32(
    int64_t rows, int64_t channels, const int32_t* acc, const double* scale, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t i = row * channels + c;
      y[i] = static_cast<float>(scale[c] * acc[i]);
    }
  }
}

void add_u8(int64_t begin, int64_t n, const uint8_t* const* x, const AddU8& p, uint8_t* y) {
  const auto code = [p](int64_t sum) {
    return static_cast<uint8_t>(std::clamp<int64_t>((sum >> p.shift) + p.zero_point, p.lo, p.hi));
  };
  if (p.operands == 2) {  // the common case: twice as fast without the loop over operands
    const uint8_t* const a = x[0] + begin;
    const uint8_t* const b = x[1] + begin;
    const int32_t m_a = p.m[0];
    const int32_t m_b = p.m[1];
    const int64_t offset = p.offset;
    for (int64_t i = 0; i < n; ++i) y[i] = code(int64_t{a[i]} * m_a + int64_t{b[i]} * m_b + offset);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t sum = p.offset;
    for (int64_t k = 0; k < p.operands; ++k) sum += int64_t{x[k][begin + i]} * p.m[k];
    y[i] = code(sum);
  }
}

void mul_u8(int64_t n, const uint8_t* a, const uint8_t* b, const MulU8& p, uint8_t* y) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t product = (a[i] - p.zero_a) * (b[i] - p.zero_b);
    y[i] = static_cast<uint8_t>(requantize(product, {p.m0, p.shift}, p.zero_point, p.lo, p.hi));
  }
}

void pack_bits_u8(int64_t rows, int64_t channels, const uint8_t* x, uint8_t* bits) {
  const int64_t bytes = (channels + 7) / 8;
  std::fill(bits, bits + rows * bytes, uint8_t{0});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < channels; ++i) {
      bits[row * bytes + i / 8] |= static_cast<uint8_t>((x[row * channels + i] & 1) << i % 8);
    }
  }
}

void unpack_fields_s8(int64_t quads, const PanelLayout& layout, const int8_t* panel, int8_t* to) {
  const int64_t fields = layout.per_byte();
  const int64_t bytes = 4 * layout.width;
  const int scale = fields == 8 ? 2 : 1;
  for (int64_t quad = 0; quad < quads; ++quad) {
    const int8_t* const from = panel + quad / fields * bytes;
    const int64_t shift = quad % fields * (8 / fields);
    for (int64_t i = 0; i < bytes; ++i) {
      const int field = static_cast<uint8_t>(from[i]) >> shift & ((1 << 8 / fields) - 1);
      *to++ = static_cast<int8_t>(scale * field - layout.raised());
    }
  }
}

void quantize_f32_u8(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask, bool* finite) {
  *finite = true;
  for (int64_t i = 0; i < n; ++i) {
    if (mask != nullptr && i % 8 == 0) mask[i / 8] = 0;
    const float product = x[i] * q.factor;
    const float v =
        q.bound == 0.0f || std::isnan(product) ? product : std::clamp(product, 0.0f, q.bound);
    if (!std::isfinite(v)) {
      *finite = false;
      continue;
    }
    codes[i] = static_cast<uint8_t>(quantize(v, q.scale, q.zero_point, q.qmin, q.qmax) + q.offset);
    const bool active = q.bound == 0.0f || (v > 0.0f && v < q.bound);
    if (mask != nullptr && active && gradient_passes(v, q.scale, q.zero_point, q.qmin, q.qmax)) {
      mask[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    }
  }
}

void dequantize_f32(
    int64_t n, const uint8_t* stored, bool is_signed, float scale, int32_t zero_point, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const int32_t code = is_signed ? static_cast<int8_t>(stored[i]) : stored[i];
    y[i] = dequantize(code, scale, zero_point);
  }
}

// Elements are words of 4 bytes, of any type and alignment. Strides count words.
void transpose_u32(int64_t rows,
                   int64_t columns,
                   const void* from,
                   int64_t from_stride,
                   void* to,
                   int64_t to_stride) {
  const auto* const words = static_cast<const unsigned char*>(from);
  auto* const transposed = static_cast<unsigned char*>(to);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      std::memcpy(transposed + 4 * (j * to_stride + i), words + 4 * (i * from_stride + j), 4);
    }
  }
}

}  // namespace quantrain::kernels::reference
