#pragma once

#include <arm_neon.h>

#include "framework/kernels/simd/integer_any.hpp"

namespace quantrain::kernels::simd {

template <>
struct Ints<xsimd::neon64> : AnyInts<xsimd::neon64> {
  using Int = int32x4_t;
  using Float = float32x4_t;
  static constexpr int kLanes = 4;
  static constexpr int kMaxPanel = 4;
  static constexpr int kShortPanel = 4;
  static constexpr int rows(int v) { return v <= 2 ? 8 : 6; }

  static QUANTRAIN_INLINE Int load(const void* p) {
    return vreinterpretq_s32_u8(vld1q_u8(static_cast<const uint8_t*>(p)));
  }
  static QUANTRAIN_INLINE void store(void* p, Int v) {
    vst1q_u8(static_cast<uint8_t*>(p), vreinterpretq_u8_s32(v));
  }
  static QUANTRAIN_INLINE Int set1(int32_t v) { return vdupq_n_s32(v); }
  static QUANTRAIN_INLINE Int zero() { return vdupq_n_s32(0); }
  static QUANTRAIN_INLINE uint32_t four_bytes(const void* p) {
    uint32_t bytes;
    __builtin_memcpy(&bytes, p, 4);
    return bytes;
  }
  static QUANTRAIN_INLINE Int load_u8(const uint8_t* p) {
    const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four_bytes(p)));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
  }
  static QUANTRAIN_INLINE Int add(Int a, Int b) { return vaddq_s32(a, b); }
  static QUANTRAIN_INLINE Int bit_or(Int a, Int b) { return vorrq_s32(a, b); }
  static QUANTRAIN_INLINE Int bit_and(Int a, Int b) { return vandq_s32(a, b); }
  static QUANTRAIN_INLINE Int sub8(Int a, Int b) {
    return vreinterpretq_s32_s8(vsubq_s8(vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)));
  }
  using Shift = Int;
  static QUANTRAIN_INLINE Shift shift_by(int32_t bits) { return set1(-bits); }
  static QUANTRAIN_INLINE Int srl(Int v, Shift bits) {
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(v), bits));
  }
  static QUANTRAIN_INLINE void store_codes(uint8_t* p, Int v, const Clamp& clamp) {
    v = vminq_s32(vmaxq_s32(v, set1(clamp.lo)), set1(clamp.hi));
    const int16x4_t words = vmovn_s32(v);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    const uint32_t four = vget_lane_u32(vreinterpret_u32_s8(bytes), 0);
    __builtin_memcpy(p, &four, 4);
  }
  /// Packs four vectors into 16 bytes and clamps them to [lo, hi]. Both bounds lie in [0, 255], so
  /// the saturation to bytes before the clamp does not change the result.
  static QUANTRAIN_INLINE uint8x16_t
  pack_codes(Int a, Int b, Int c, Int d, uint8x16_t lo, uint8x16_t hi) {
    const int16x8_t ab = vqmovn_high_s32(vqmovn_s32(a), b);
    const int16x8_t cd = vqmovn_high_s32(vqmovn_s32(c), d);
    const uint8x16_t bytes = vqmovun_high_s16(vqmovun_s16(ab), cd);
    return vminq_u8(vmaxq_u8(bytes, lo), hi);
  }
  template <int R, int V>
  static QUANTRAIN_INLINE void store_tile(uint8_t* p,
                                          int64_t stride,
                                          const Int (&tile)[R][V],
                                          const Clamp& clamp) {
    const auto at = [&](int i) QUANTRAIN_INLINE { return p + i / V * stride + i % V * kLanes; };
    const uint8x16_t lo = vdupq_n_u8(static_cast<uint8_t>(clamp.lo));
    const uint8x16_t hi = vdupq_n_u8(static_cast<uint8_t>(clamp.hi));
    repeat<R * V / 4>([&](auto group) QUANTRAIN_INLINE {
      constexpr int i = 4 * group;
      const uint8x16_t bytes = pack_codes(tile[i / V][i % V],
                                          tile[(i + 1) / V][(i + 1) % V],
                                          tile[(i + 2) / V][(i + 2) % V],
                                          tile[(i + 3) / V][(i + 3) % V],
                                          lo,
                                          hi);
      if constexpr (V == 4) {
        vst1q_u8(at(i), bytes);
      } else if constexpr (V == 2) {
        vst1_u8(at(i), vget_low_u8(bytes));
        vst1_u8(at(i + 2), vget_high_u8(bytes));
      } else {
        const uint32x4_t words = vreinterpretq_u32_u8(bytes);
        repeat<4>([&](auto word) QUANTRAIN_INLINE {
          const uint32_t four = vgetq_lane_u32(words, word);
          __builtin_memcpy(at(i + word), &four, 4);
        });
      }
    });
    repeat<R * V % 4>([&](auto last) QUANTRAIN_INLINE {
      constexpr int i = R * V / 4 * 4 + last;
      store_codes(at(i), tile[i / V][i % V], clamp);
    });
  }
  static QUANTRAIN_INLINE uint32_t bits(uint32x4_t lanes) {
    const uint32_t bit_of_lane[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(lanes, vld1q_u32(bit_of_lane)));
  }
  static QUANTRAIN_INLINE uint32_t bits_between(Int v, int32_t lo, int32_t hi) {
    return bits(vandq_u32(vcgeq_s32(v, set1(lo)), vcleq_s32(v, set1(hi))));
  }

  static QUANTRAIN_INLINE Int set1_64(int64_t v) { return vreinterpretq_s32_s64(vdupq_n_s64(v)); }
  static QUANTRAIN_INLINE Int odd(Int v) {
    return vreinterpretq_s32_u64(vshrq_n_u64(vreinterpretq_u64_s32(v), 32));
  }
  static QUANTRAIN_INLINE Int mul_unsigned(Int a, Int b) {
    return vreinterpretq_s32_u64(
        vmull_u32(vmovn_u64(vreinterpretq_u64_s32(a)), vmovn_u64(vreinterpretq_u64_s32(b))));
  }
  static QUANTRAIN_INLINE Int add64(Int a, Int b) {
    return vreinterpretq_s32_s64(vaddq_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
  static QUANTRAIN_INLINE Int srl64(Int v, int count) {
    return vreinterpretq_s32_u64(vshlq_u64(vreinterpretq_u64_s32(v), vdupq_n_s64(-count)));
  }
  static QUANTRAIN_INLINE Int sra(Int v, int count) { return vshlq_s32(v, vdupq_n_s32(-count)); }
  static QUANTRAIN_INLINE Int low_halves(Int even, Int odd) { return vtrn1q_s32(even, odd); }
  static QUANTRAIN_INLINE Int high_halves(Int even, Int odd) { return vtrn2q_s32(even, odd); }

  static QUANTRAIN_INLINE Float load(const float* p) { return vld1q_f32(p); }
  static QUANTRAIN_INLINE void store(float* p, Float v) { vst1q_f32(p, v); }
  static QUANTRAIN_INLINE Float set1(float v) { return vdupq_n_f32(v); }
  static QUANTRAIN_INLINE Float mul(Float a, Float b) { return vmulq_f32(a, b); }
  static QUANTRAIN_INLINE Float div(Float a, Float b) { return vdivq_f32(a, b); }
  static QUANTRAIN_INLINE Float min(Float a, Float b) { return vminq_f32(a, b); }
  static QUANTRAIN_INLINE Float max(Float a, Float b) { return vmaxq_f32(a, b); }
  static QUANTRAIN_INLINE float smallest(Float v) { return vminvq_f32(v); }
  static QUANTRAIN_INLINE float largest(Float v) { return vmaxvq_f32(v); }
  static QUANTRAIN_INLINE bool any(Int v) { return vmaxvq_u32(vreinterpretq_u32_s32(v)) != 0; }
  static QUANTRAIN_INLINE Int as_ints(Float v) { return vreinterpretq_s32_f32(v); }
  static QUANTRAIN_INLINE Int not_finite(Float v) { return as_ints(vsubq_f32(v, v)); }
  static QUANTRAIN_INLINE Int round(Float v) { return vcvtnq_s32_f32(v); }
  static QUANTRAIN_INLINE Float keep(uint32_t bits, Float v) {
    const uint32_t bit_of_lane[4] = {1, 2, 4, 8};
    const uint32x4_t set = vtstq_u32(vdupq_n_u32(bits), vld1q_u32(bit_of_lane));
    return vreinterpretq_f32_u32(vandq_u32(set, vreinterpretq_u32_f32(v)));
  }

  static constexpr int kBytes = 16;
  static QUANTRAIN_INLINE Int max_u8(Int a, Int b) {
    return vreinterpretq_s32_u8(vmaxq_u8(vreinterpretq_u8_s32(a), vreinterpretq_u8_s32(b)));
  }
  static QUANTRAIN_INLINE void interleave(const uint8_t* const (&rows)[4], int64_t i, uint8_t* to) {
    const uint8x16x4_t bytes = {{vld1q_u8(rows[0] + i),
                                 vld1q_u8(rows[1] + i),
                                 vld1q_u8(rows[2] + i),
                                 vld1q_u8(rows[3] + i)}};
    vst4q_u8(to, bytes);
  }

  static constexpr int kFewPanel = 4;
  static QUANTRAIN_INLINE Int count(Int counts, Int v) {
    const uint8x16_t ones = vcntq_u8(vreinterpretq_u8_s32(v));
    return vreinterpretq_s32_u8(vaddq_u8(vreinterpretq_u8_s32(counts), ones));
  }
  static QUANTRAIN_INLINE Int add_counts(Int acc, Int counts) {
    const uint16x8_t pairs = vpaddlq_u8(vreinterpretq_u8_s32(counts));
    return vreinterpretq_s32_u32(vpadalq_u16(vreinterpretq_u32_s32(acc), pairs));
  }
  static QUANTRAIN_INLINE uint16_t lowest_bits(const uint8_t* p) {
    const uint8x16_t places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t bits = vandq_u8(vtstq_u8(vld1q_u8(p), vdupq_n_u8(1)), places);
    const uint64x2_t bytes = vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(bits)));
    return static_cast<uint16_t>(vgetq_lane_u64(bytes, 0) | vgetq_lane_u64(bytes, 1) << 8);
  }

  static constexpr bool kPairs = true;
  static constexpr int kSteps = 2;
  static QUANTRAIN_INLINE Int part(Int quad, int step) {
    const uint16x8_t pairs = vreinterpretq_u16_s32(quad);
    return vreinterpretq_s32_u16(step == 0 ? vandq_u16(pairs, vdupq_n_u16(0xff))
                                           : vshrq_n_u16(pairs, 8));
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    const int16x8_t a = vreinterpretq_s16_s32(x);
    const int16x8_t b = vreinterpretq_s16_s32(w);
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    return vaddq_s32(acc, vpaddq_s32(low, vmull_high_s16(a, b)));
  }

  // dot_lane() multiplies the weights of four outputs by one widened byte of the left operand
  // (SMLAL). In a depthwise convolution, no byte serves four outputs, because each output channel
  // reads its own input channel. There, dot() multiplies pairs instead.
  static constexpr bool kByLane = true;
  static constexpr bool kPlanes = true;
  static constexpr int kLeftBytes = 8;
  static constexpr int kStepBytes = 1;
  using Left = int16x8_t;
  using Right = int16x4_t;
  template <int bytes>
  static QUANTRAIN_INLINE Left load_left(const uint8_t* p) {
    const uint8x8_t x = bytes == 8 ? vld1_u8(p) : vcreate_u8(four_bytes(p));
    return vreinterpretq_s16_u16(vmovl_u8(x));
  }
  static QUANTRAIN_INLINE Right load_right(const int8_t* p) {
    return vreinterpret_s16_s8(vld1_s8(p));
  }
  template <int lane>
  static QUANTRAIN_INLINE Int dot_lane(Int acc, Left x, Right w) {
    return vmlal_laneq_s16(acc, w, x, lane);
  }
};

#if defined(__ARM_FEATURE_DOTPROD)
/// SDOT multiplies signed bytes, so 128 is subtracted from codes by inverting the highest bit of
/// each byte.
template <>
struct Ints<Neon64Dot> : Ints<xsimd::neon64> {
  using Few = Neon64Dot;
  static constexpr bool kPairs = false;
  static constexpr int kSteps = 1;
  static constexpr int32_t kOffset = 128;
  static constexpr bool kFields = true;

  static QUANTRAIN_INLINE Int part(Int quad, int) {
    return vreinterpretq_s32_u8(veorq_u8(vreinterpretq_u8_s32(quad), vdupq_n_u8(0x80)));
  }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return vdotq_s32(acc, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x));
  }

  static constexpr bool kPlanes = false;
  static constexpr int kLeftBytes = 16;
  static constexpr int kStepBytes = 4;
  using Left = Int;
  using Right = Int;
  template <int bytes>
  static QUANTRAIN_INLINE Left load_bytes(const uint8_t* p) {
    return bytes == 16 ? load(p) : set1(static_cast<int32_t>(four_bytes(p)));
  }
  template <int bytes>
  static QUANTRAIN_INLINE Left load_left(const uint8_t* p) {
    return part(load_bytes<bytes>(p), 0);
  }
  static QUANTRAIN_INLINE Right load_right(const int8_t* p) { return load(p); }
  template <int lane>
  static QUANTRAIN_INLINE Int dot_lane(Int acc, Left x, Right w) {
    return vdotq_laneq_s32(acc, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x), lane);
  }
};
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
/// USDOT, SUDOT and USMMLA multiply unsigned by signed bytes.
template <>
struct Ints<Neon64I8mm> : Ints<Neon64Dot> {
  using Few = Neon64I8mm;
  static constexpr int32_t kOffset = 0;

  static QUANTRAIN_INLINE Int part(Int quad, int) { return quad; }
  static QUANTRAIN_INLINE Int dot(Int acc, Int x, Int w) {
    return vusdotq_s32(acc, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(w));
  }
  template <int bytes>
  static QUANTRAIN_INLINE Left load_left(const uint8_t* p) {
    return load_bytes<bytes>(p);
  }
  template <int lane>
  static QUANTRAIN_INLINE Int dot_lane(Int acc, Left x, Right w) {
    return vsudotq_laneq_s32(acc, vreinterpretq_s8_s32(w), vreinterpretq_u8_s32(x), lane);
  }

  // A vector holds two octets, which are groups of 8 bytes. dot_octets() multiplies each octet of
  // x by each octet of w: acc[2 r + o] += x[r] * w[o] (USMMLA).
  static constexpr bool kOctets = true;
  static QUANTRAIN_INLINE Int octets(const uint8_t* a, const uint8_t* b) {
    return vreinterpretq_s32_u8(vcombine_u8(vld1_u8(a), vld1_u8(b)));
  }
  static QUANTRAIN_INLINE Int octet_twice(const uint8_t* a) {
    const uint8x8_t octet = vld1_u8(a);
    return vreinterpretq_s32_u8(vcombine_u8(octet, octet));
  }
  static QUANTRAIN_INLINE Int dot_octets(Int acc, Int x, Int w) {
    return vusmmlaq_s32(acc, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(w));
  }
  static QUANTRAIN_INLINE Int low_pairs(Int a, Int b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
  static QUANTRAIN_INLINE Int high_pairs(Int a, Int b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
  static QUANTRAIN_INLINE Int add_pairs(Int a, Int b) { return vpaddq_s32(a, b); }
};
#endif

}  // namespace quantrain::kernels::simd
