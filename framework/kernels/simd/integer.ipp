#pragma once

#include "framework/kernels/reference/reference.hpp"
#include "framework/kernels/simd/integer_dot.ipp"
#include "framework/kernels/simd/transpose.ipp"

// Quantization and requantization, addition and multiplication of codes, and the transpose of
// packed weights. Masks with one bit per element are computed for 16 elements at a time.
namespace quantrain::kernels::simd {

/// Calls group(i, count) for groups of 16 elements. The last group may have fewer.
template <class Group>
inline QUANTRAIN_INLINE void for_groups(int64_t n, const Group& group) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) group(i, int64_t{16});
  if (i < n) group(i, n - i);
}

template <class T>
inline QUANTRAIN_INLINE void copy_few(int64_t n, const T* from, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

inline QUANTRAIN_INLINE void store_bits(int64_t count, uint32_t bits, uint8_t* mask) {
  mask[0] = static_cast<uint8_t>(bits);
  if (count > 8) mask[1] = static_cast<uint8_t>(bits >> 8);
}

template <class Arch, bool kUsual>
void requantize_groups(int64_t n,
                       int64_t period,
                       const int32_t* acc,
                       const RequantizeU8& r,
                       uint8_t* y,
                       uint8_t* mask,
                       int32_t mask_lo,
                       int32_t mask_hi) {
  using I = Ints<Arch>;
  const Clamp clamp{r.lo, r.hi};
  int64_t channel = 0;
  for_groups(n, [&](int64_t i, int64_t count) QUANTRAIN_INLINE {
    int32_t last_acc[16] = {};
    uint8_t last_y[16];
    const bool whole = count == 16;
    if (!whole) copy_few(count, acc + i, last_acc);
    const int32_t* const from = whole ? acc + i : last_acc;
    uint8_t* const to = whole ? y + i : last_y;
    uint32_t bits = 0;
#pragma GCC unroll 4
    for (int j = 0; j < 16; j += I::kLanes) {
      const Requantizer<Arch, kUsual> requantizer(r.from(channel + j));
      const typename I::Int v = requantizer(I::load(from + j));
      I::store_codes(to + j, v, clamp);
      if (mask != nullptr) bits |= I::bits_between(v, mask_lo, mask_hi) << j;
    }
    if (!whole) copy_few(count, last_y, y + i);
    if (mask != nullptr) store_bits(count, bits & (0xffffu >> (16 - count)), mask + i / 8);
    channel += 16;
    if (channel >= period) channel = 0;
  });
}

template <class Arch>
void requantize_s32_u8(int64_t n,
                       int64_t period,
                       const int32_t* acc,
                       const RequantizeU8& r,
                       uint8_t* y,
                       uint8_t* mask,
                       int32_t mask_lo,
                       int32_t mask_hi) {
  (r.usual ? requantize_groups<Arch, true>
           : requantize_groups<Arch, false>)(n, period, acc, r, y, mask, mask_lo, mask_hi);
}

template <class Arch>
void dequantize_s32_f32(
    int64_t rows, int64_t channels, const int32_t* acc, const double* scale, float* y) {
  for (int64_t row = 0; row < rows; ++row, acc += channels, y += channels) {
    for (int64_t c = 0; c < channels; ++c) y[c] = static_cast<float>(scale[c] * acc[c]);
  }
}

// kOperands is the number of operands if it is known at compile time, so that their multipliers
// stay in registers. Otherwise kOperands is 0.
template <class Arch, int kOperands>
void add_operands(int64_t begin, int64_t n, const uint8_t* const* x, const AddU8& p, uint8_t* y) {
  using I = Ints<Arch>;
  using Int = typename I::Int;
  constexpr int kKept = kOperands > 0 ? kOperands : 1;
  const int64_t operands = kOperands > 0 ? kOperands : p.operands;
  const Clamp clamp{p.lo, p.hi};
  const Int zero_point = I::set1(p.zero_point);
  const Int offset = I::set1_64(p.offset);
  const int32_t shift = p.shift;
  const uint8_t* kept_x[kKept];
  Int kept_m[kKept];
  if constexpr (kOperands > 0) {
    for (int k = 0; k < kOperands; ++k) {
      kept_x[k] = x[k] + begin;
      kept_m[k] = I::set1(p.m[k]);
    }
  }
  const auto from = [&](int64_t k) QUANTRAIN_INLINE {
    if constexpr (kOperands > 0) return kept_x[k];
    return x[k] + begin;
  };
  const auto m = [&](int64_t k) QUANTRAIN_INLINE {
    if constexpr (kOperands > 0) return kept_m[k];
    return I::set1(p.m[k]);
  };
  // Adds all operands for kLanes elements, beginning at element i. load(k, i) returns these
  // elements of operand k.
  const auto four_or_more = [&](const auto& load, int64_t i, uint8_t* to) QUANTRAIN_INLINE {
    Int even = offset;
    Int odd = offset;
    for (int64_t k = 0; k < operands; ++k) {
      const Int x_k = load(k, i);
      const Int m_k = m(k);
      even = I::add64(even, I::mul_unsigned(x_k, m_k));
      odd = I::add64(odd, I::mul_unsigned(I::odd(x_k), m_k));
    }
    // A logical shift by at most 32 is wrong only in the upper 32 bits, which are not used.
    const Int v = shift <= 32 ? I::low_halves(I::srl64(even, shift), I::srl64(odd, shift))
                              : I::sra(I::high_halves(even, odd), shift - 32);
    I::store_codes(to, I::add(v, zero_point), clamp);
  };
  const auto whole = [&](int64_t k, int64_t i) QUANTRAIN_INLINE { return I::load_u8(from(k) + i); };
  const auto part = [&](int64_t k, int64_t i) QUANTRAIN_INLINE {
    uint8_t last[I::kLanes] = {};
    copy_few(n - i, from(k) + i, last);
    return I::load_u8(last);
  };
  int64_t i = 0;
  for (; i + I::kLanes <= n; i += I::kLanes) four_or_more(whole, i, y + i);
  if (i < n) {
    uint8_t last[I::kLanes];
    four_or_more(part, i, last);
    copy_few(n - i, last, y + i);
  }
}

template <class Arch>
void add_u8(int64_t begin, int64_t n, const uint8_t* const* x, const AddU8& p, uint8_t* y) {
  // Sums of 2^k operands are below 2^(39 + k). So after a shift by 9 + k or more, they fit into 30
  // bits. Smaller shifts belong to real multipliers of 2^(21 - k) or more, for which the plain loop
  // is good enough.
  if (p.operands << 9 > int64_t{1} << p.shift) return reference::add_u8(begin, n, x, p, y);
  if (p.operands == 2) return add_operands<Arch, 2>(begin, n, x, p, y);
  add_operands<Arch, 0>(begin, n, x, p, y);
}

template <class Arch>
void mul_u8(int64_t n, const uint8_t* a, const uint8_t* b, const MulU8& p, uint8_t* y) {
  // Products times m0 are below 2^47. So after a shift by 18 or more, they fit into 30 bits.
  // Smaller shifts belong to real multipliers of 2^12 or more, for which the plain loop is good
  // enough.
  if (p.shift < 18) return reference::mul_u8(n, a, b, p, y);
  using I = Ints<Arch>;
  using Int = typename I::Int;
  constexpr int32_t kAbove = 1 << 16;  // every product is above -kAbove
  const Clamp clamp{p.lo, p.hi};
  const Int zero_point = I::set1(p.zero_point);
  const Int minus_zero_a = I::set1(-p.zero_a);
  const Int minus_zero_b = I::set1(-p.zero_b);
  const Int above = I::set1(kAbove);
  const Int m0 = I::set1(p.m0);
  const Int offset = I::set1_64((int64_t{1} << (p.shift - 1)) - int64_t{kAbove} * p.m0);
  // Works on the even lanes. The low half of an unsigned product equals that of the signed product.
  // Adding kAbove makes this half positive.
  const auto scaled = [&](Int x_a, Int x_b) QUANTRAIN_INLINE {
    const Int raised = I::add(I::mul_unsigned(x_a, x_b), above);
    return I::add64(offset, I::mul_unsigned(raised, m0));
  };
  const auto four_or_more =
      [&](const uint8_t* from_a, const uint8_t* from_b, uint8_t* to) QUANTRAIN_INLINE {
        const Int x_a = I::add(I::load_u8(from_a), minus_zero_a);
        const Int x_b = I::add(I::load_u8(from_b), minus_zero_b);
        const Int even = scaled(x_a, x_b);
        const Int odd = scaled(I::odd(x_a), I::odd(x_b));
        // A logical shift by at most 32 is wrong only in the upper 32 bits, which are not used.
        const Int v = p.shift <= 32 ? I::low_halves(I::srl64(even, p.shift), I::srl64(odd, p.shift))
                                    : I::sra(I::high_halves(even, odd), p.shift - 32);
        I::store_codes(to, I::add(v, zero_point), clamp);
      };
  int64_t i = 0;
  for (; i + I::kLanes <= n; i += I::kLanes) four_or_more(a + i, b + i, y + i);
  if (i < n) {
    uint8_t last[3][I::kLanes] = {};
    copy_few(n - i, a + i, last[0]);
    copy_few(n - i, b + i, last[1]);
    four_or_more(last[0], last[1], last[2]);
    copy_few(n - i, last[2], y + i);
  }
}

template <class Arch, bool kRelu>
void quantize_groups(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask, bool* finite) {
  using I = Ints<Arch>;
  using Float = typename I::Float;
  const Float scale = I::set1(q.scale);
  const Float factor = I::set1(q.factor);
  const Float zero = I::set1(0.0f);
  const Float bound = I::set1(q.bound);
  // The bits of the largest float below the bound. Positive floats have the order of their bits.
  const int32_t below_bound = __builtin_bit_cast(int32_t, q.bound) - 1;
  // Quotients beyond these bounds are outside the range of codes anyway. After this clamp, they fit
  // into an integer.
  const Float hi = I::set1(0x1p20f);
  const Float lo = I::set1(-0x1p20f);
  const typename I::Int zero_point = I::set1(q.zero_point + q.offset);
  const Clamp stored{q.qmin + q.offset, q.qmax + q.offset};
  typename I::Int bad = I::zero();
  for_groups(n, [&](int64_t i, int64_t count) QUANTRAIN_INLINE {
    float last_x[16] = {};
    uint8_t last_codes[16];
    const bool whole = count == 16;
    if (!whole) copy_few(count, x + i, last_x);
    const float* const from = whole ? x + i : last_x;
    uint8_t* const to = whole ? codes + i : last_codes;
    uint32_t bits = 0;
#pragma GCC unroll 4
    for (int j = 0; j < 16; j += I::kLanes) {
      Float v = I::mul(I::load(from + j), factor);
      if constexpr (kRelu) v = I::min(bound, I::max(zero, v));  // NaN stays NaN
      bad = I::bit_or(bad, I::not_finite(v));
      const typename I::Int rounded = I::round(I::min(I::max(I::div(v, scale), lo), hi));
      I::store_codes(to + j, I::add(rounded, zero_point), stored);
      if (mask != nullptr) {
        uint32_t passes = I::bits_between(rounded, q.qmin - q.zero_point, q.qmax - q.zero_point);
        if constexpr (kRelu) passes &= I::bits_between(I::as_ints(v), 1, below_bound);
        bits |= passes << j;
      }
    }
    if (!whole) copy_few(count, last_codes, codes + i);
    if (mask != nullptr) store_bits(count, bits & (0xffffu >> (16 - count)), mask + i / 8);
  });
  *finite = !I::any(bad);
}

template <class Arch>
void quantize_f32_u8(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask, bool* finite) {
  (q.bound == 0.0f ? quantize_groups<Arch, false>
                   : quantize_groups<Arch, true>)(n, x, q, codes, mask, finite);
}

template <class Arch>
void dequantize_f32(
    int64_t n, const uint8_t* stored, bool is_signed, float scale, int32_t zero_point, float* y) {
  const int32_t flip = is_signed ? 128 : 0;  // the XOR below adds 128 to a signed byte
  const int32_t zero = zero_point + flip;
  for (int64_t i = 0; i < n; ++i) y[i] = scale * static_cast<float>((stored[i] ^ flip) - zero);
}

template <class Arch>
void transpose_u32(int64_t rows,
                   int64_t columns,
                   const void* from,
                   int64_t from_stride,
                   void* to,
                   int64_t to_stride) {
  transpose<Arch>(rows, columns, from, from_stride, to, to_stride);
}

/// Unpacks to int16: pairs or planes.
template <class Arch>
QUANTRAIN_ONE_COPY void unpack_wide(int64_t quads,
                                    const PanelLayout& layout,
                                    const int8_t* panel,
                                    int8_t* to) {
  const int64_t width = layout.width;
  const auto fields = static_cast<int>(layout.per_byte());
  const int bits = 8 / fields;
  const int mask = (1 << bits) - 1;
  const int scale = bits == 1 ? 2 : 1;
  const int raised = layout.raised();
  for (int64_t quad = 0; quad < quads; ++quad, to += 8 * width) {
    const int8_t* const from = panel + quad / fields * 4 * width;
    const int shift = static_cast<int>(quad % fields) * bits;
    for (int k = 0; k < 4; ++k) {
      int8_t* const first = to + (layout.planes ? 2 * k * width : k % 2 * 4 * width + k / 2 * 2);
      const int64_t step = layout.planes ? 2 : 4;
      for (int64_t o = 0; o < width; ++o) {
        const int field = static_cast<uint8_t>(from[4 * o + k]) >> shift & mask;
        const auto weight = static_cast<int16_t>(scale * field - raised);
        __builtin_memcpy(first + o * step, &weight, 2);
      }
    }
  }
}

template <class Arch>
void unpack_fields_s8(int64_t quads, const PanelLayout& layout, const int8_t* panel, int8_t* to) {
  if (layout.pairs || layout.planes) return unpack_wide<Arch>(quads, layout, panel, to);
  using I = Ints<Arch>;
  const auto fields = static_cast<int>(layout.per_byte());
  const int bits = 8 / fields;
  const int64_t size = 4 * layout.width;
  const typename I::Int mask = I::set1(((1 << bits) - 1) * 0x01010101);
  const typename I::Int less = I::set1(layout.raised() * 0x01010101);
  for (int64_t quad = 0; quad < quads; ++quad, to += size) {
    const int8_t* const from = panel + quad / fields * size;
    const auto shift = I::shift_by(static_cast<int32_t>(quad % fields) * bits);
    for (int64_t i = 0; i < size; i += I::kBytes) {
      typename I::Int v = I::bit_and(I::srl(I::load(from + i), shift), mask);
      if (bits == 1) v = I::add(v, v);
      I::store(to + i, I::sub8(v, less));
    }
  }
}

template <class Arch>
void pack_bits_u8(int64_t rows, int64_t channels, const uint8_t* x, uint8_t* bits) {
  using I = Ints<Arch>;
  if (channels % 8 == 0) {  // rows follow each other without unused bits
    channels *= rows;
    rows = channels > 0;
  }
  for (int64_t row = 0; row < rows; ++row) {
    int64_t i = 0;
    for (; i + I::kBytes <= channels; i += I::kBytes, x += I::kBytes, bits += I::kBytes / 8) {
      const auto some = I::lowest_bits(x);
      __builtin_memcpy(bits, &some, sizeof(some));
    }
    for (; i < channels; i += 8, ++bits) {
      uint8_t byte = 0;
      for (int64_t k = 0; k < 8 && i + k < channels; ++k, ++x) {
        byte = static_cast<uint8_t>(byte | (*x & 1) << k);
      }
      *bits = byte;
    }
  }
}

}  // namespace quantrain::kernels::simd
