#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/integer_vector.hpp"

namespace quantrain::kernels::simd {

/// Computes docs/quantization.md (8), without the clamp, for a vector of sums. The sums belong to
/// the first channels of r.
/// kUsual means that r.round is not null; it includes the zero point. Then only the upper halves of
/// the products p matter:
///   (p + 2^(shift - 1)) >> shift = ((p >> 32) + 2^(shift - 33)) >> (shift - 32).
template <class Arch, bool kUsual>
class Requantizer {
  using I = Ints<Arch>;
  using Int = typename I::Int;

 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_even_(I::load(r.m0)),
        m0_odd_(I::odd(m0_even_)),
        round_(I::load(r.round)),
        shift_(I::add(I::load(r.shift), I::set1(-32))) {}

  QUANTRAIN_INLINE Int operator()(Int acc) const {
    const Int even = I::mul(acc, m0_even_);
    const Int odd = I::mul(I::odd(acc), m0_odd_);
    return I::srav(I::add(I::high_halves(even, odd), round_), shift_);
  }

 private:
  Int m0_even_, m0_odd_, round_, shift_;
};

/// Computes (8), without the clamp, for any shift. The results saturate at +-kSaturated, far
/// outside the range of codes.
template <class Arch>
class Requantizer<Arch, false> {
  using I = Ints<Arch>;
  using Int = typename I::Int;

 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_even_(I::load(r.m0)),
        m0_odd_(I::odd(m0_even_)),
        shift_even_(I::low_halves(I::load(r.shift), I::zero())),
        shift_odd_(I::odd(I::load(r.shift))),
        zero_point_(I::set1(r.zero_point)) {
    const Int one = I::set1_64(1);
    const Int minus_one = I::set1_64(-1);
    half_even_ = I::sllv64(one, I::add64(shift_even_, minus_one));
    half_odd_ = I::sllv64(one, I::add64(shift_odd_, minus_one));
  }

  QUANTRAIN_INLINE Int operator()(Int acc) const {
    const Int even = I::add64(I::mul(acc, m0_even_), half_even_);
    const Int odd = I::add64(I::mul(I::odd(acc), m0_odd_), half_odd_);
    return I::add(zero_point_,
                  I::low_halves(I::saturate64(I::srav64(even, shift_even_)),
                                I::saturate64(I::srav64(odd, shift_odd_))));
  }

 private:
  Int m0_even_, m0_odd_, half_even_, half_odd_, shift_even_, shift_odd_, zero_point_;
};

#if defined(__x86_64__)
/// SSE2 has neither signed 64-bit products nor a shift count for each lane, so this is a scalar
/// loop.
class RequantizerSse2 {
 public:
  QUANTRAIN_INLINE RequantizerSse2() {}
  QUANTRAIN_INLINE explicit RequantizerSse2(const RequantizeU8& r) : r_(r) {}

  QUANTRAIN_INLINE __m128i operator()(__m128i acc) const {
    alignas(16) int32_t lanes[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(lanes), acc);
    for (int i = 0; i < 4; ++i) {
      const int64_t half = int64_t{1} << (r_.shift[i] - 1);
      const int64_t code = (int64_t{lanes[i]} * r_.m0[i] + half) >> r_.shift[i];
      lanes[i] = r_.zero_point + static_cast<int32_t>(code > kSaturated    ? kSaturated
                                                      : code < -kSaturated ? -kSaturated
                                                                           : code);
    }
    return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
  }

 private:
  RequantizeU8 r_;
};
template <>
class Requantizer<xsimd::sse2, true> : public RequantizerSse2 {
  using RequantizerSse2::RequantizerSse2;
};
template <>
class Requantizer<xsimd::sse2, false> : public RequantizerSse2 {
  using RequantizerSse2::RequantizerSse2;
};
#endif

#if defined(__aarch64__)
template <class Arch>
concept IsNeon64 = std::is_base_of_v<xsimd::neon64, Arch>;

/// NEON has an instruction for each step of (8): a rounding shift that does not overflow, and a
/// narrowing that saturates.
template <IsNeon64 Arch>
class Requantizer<Arch, false> {
 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_(vld1q_s32(r.m0)),
        minus_shift_(vnegq_s32(vld1q_s32(r.shift))),
        zero_point_(vdupq_n_s32(r.zero_point)) {}

  QUANTRAIN_INLINE int32x4_t operator()(int32x4_t acc) const {
    const int64x2_t low = vmull_s32(vget_low_s32(acc), vget_low_s32(m0_));
    const int64x2_t high = vmull_high_s32(acc, m0_);
    const int64x2_t code_low = vrshlq_s64(low, vmovl_s32(vget_low_s32(minus_shift_)));
    const int64x2_t code_high = vrshlq_s64(high, vmovl_high_s32(minus_shift_));
    return vqaddq_s32(vcombine_s32(vqmovn_s64(code_low), vqmovn_s64(code_high)), zero_point_);
  }

 private:
  int32x4_t m0_, minus_shift_, zero_point_;
};

/// The usual shifts are above 31, so SQDMULH, which computes p >> 31, keeps all bits that matter:
///   (p + 2^(shift - 1)) >> shift = ((p >> 31) + 2^(shift - 32)) >> (shift - 31).
template <IsNeon64 Arch>
class Requantizer<Arch, true> {
 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_(vld1q_s32(r.m0)),
        minus_shift_(vsubq_s32(vdupq_n_s32(31), vld1q_s32(r.shift))),
        zero_point_(vdupq_n_s32(r.zero_point)) {}

  QUANTRAIN_INLINE int32x4_t operator()(int32x4_t acc) const {
    return vaddq_s32(vrshlq_s32(vqdmulhq_s32(acc, m0_), minus_shift_), zero_point_);
  }

 private:
  int32x4_t m0_, minus_shift_, zero_point_;
};
#endif

}  // namespace quantrain::kernels::simd
