#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/integer_vector.hpp"

namespace quantrain::kernels::simd {

/// Computes docs/quantization.md (8), without the clamp, for a vector of sums. The sums belong to
/// the first channels of r.
/// kUsual means that r.usual is set. Then the sums are multiplied by 2^left first, and s = shift +
/// left takes the place of the shift. Only the upper halves of the products p matter, and the zero
/// point can be added before the shift:
///   ((p + 2^(s - 1)) >> s) + zero_point
///     = ((p >> 32) + (2 zero_point + 1) * 2^(s - 33)) >> (s - 32).
template <class Arch, bool kUsual>
class Requantizer {
  using I = Ints<Arch>;
  using Int = typename I::Int;

 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_even_(I::load(r.m0)),
        m0_odd_(I::odd(m0_even_)),
        shift_(I::add(I::load(r.shift), I::set1(r.left - 32))),
        round_(I::sllv(I::set1(2 * r.zero_point + 1), I::add(shift_, I::set1(-1)))),
        left_(I::set1(r.left)) {}

  QUANTRAIN_INLINE Int operator()(Int sum) const {
    const Int acc = I::sllv(sum, left_);
    const Int even = I::mul(acc, m0_even_);
    const Int odd = I::mul(I::odd(acc), m0_odd_);
    return I::srav(I::add(I::high_halves(even, odd), round_), shift_);
  }

 private:
  Int m0_even_, m0_odd_, shift_, round_, left_;
};

/// Computes (8), without the clamp, for any shift. The shifted products saturate at +-kSaturated,
/// far outside the range of codes.
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
        shift_odd_(I::low_halves(I::odd(I::load(r.shift)), I::zero())),
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
/// SSE2 shifts all lanes by the same count. So a multiplication by 2^(22 - c) and a shift by 22
/// replace the shift by c = s - 32, which lies in [1, 22].
/// SSE2 multiplies only unsigned integers. So two numbers are raised by 2^31: the sum, before it is
/// multiplied by m0, and the rounded upper half of the product, before it is multiplied by
/// 2^(22 - c). The first raise adds m0 * 2^31 to the product, and the second adds 2^(31 - c) to the
/// result. Both terms are subtracted again.
template <>
class Requantizer<xsimd::sse2, true> {
  using I = Ints<xsimd::sse2>;

 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_even_(I::load(r.m0)), m0_odd_(I::srl64(m0_even_, 32)), left_(_mm_cvtsi32_si128(r.left)) {
    raised_even_ = _mm_slli_epi64(I::low_halves(m0_even_, I::zero()), 31);
    raised_odd_ = _mm_slli_epi64(m0_odd_, 31);
    // (2 zero_point + 1) * 2^(s - 33), and 2^(54 - s)
    const __m128i exponent = _mm_add_epi32(I::load(r.shift), I::set1(r.left - 33));
    round_ = times_power(static_cast<float>(2 * r.zero_point + 1), exponent);
    factor_even_ = times_power(1.0f, _mm_sub_epi32(I::set1(21), exponent));
    factor_odd_ = I::odd(factor_even_);
    raised_ = _mm_slli_epi32(factor_even_, 9);
  }

  QUANTRAIN_INLINE __m128i operator()(__m128i acc) const {
    const __m128i sign = I::set1(INT32_MIN);
    const __m128i sum = _mm_xor_si128(_mm_sll_epi32(acc, left_), sign);
    const __m128i even = _mm_sub_epi64(I::mul_unsigned(sum, m0_even_), raised_even_);
    const __m128i odd = _mm_sub_epi64(I::mul_unsigned(I::odd(sum), m0_odd_), raised_odd_);
    const __m128i rounded = _mm_xor_si128(I::add(I::high_halves(even, odd), round_), sign);
    const __m128i shifted =
        I::low_halves(I::srl64(I::mul_unsigned(rounded, factor_even_), 22),
                      I::srl64(I::mul_unsigned(I::odd(rounded), factor_odd_), 22));
    return _mm_sub_epi32(shifted, raised_);
  }

 private:
  /// x * 2^n, by an addition to the exponent.
  static QUANTRAIN_INLINE __m128i times_power(float x, __m128i n) {
    const __m128i bits = _mm_castps_si128(I::set1(x));
    return _mm_cvttps_epi32(_mm_castsi128_ps(_mm_add_epi32(bits, _mm_slli_epi32(n, 23))));
  }

  __m128i m0_even_, m0_odd_, left_;
  __m128i raised_even_, raised_odd_, round_, factor_even_, factor_odd_, raised_;
};

/// A scalar loop, because SSE2 lacks the shifts.
template <>
class Requantizer<xsimd::sse2, false> {
 public:
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r) : r_(r) {}

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

/// s is above 31, so SQDMULH, which computes p >> 31, keeps all bits that matter:
///   (p + 2^(s - 1)) >> s = ((p >> 31) + 2^(s - 32)) >> (s - 31).
template <IsNeon64 Arch>
class Requantizer<Arch, true> {
 public:
  Requantizer() = default;
  QUANTRAIN_INLINE explicit Requantizer(const RequantizeU8& r)
      : m0_(vld1q_s32(r.m0)),
        minus_shift_(vsubq_s32(vdupq_n_s32(31 - r.left), vld1q_s32(r.shift))),
        zero_point_(vdupq_n_s32(r.zero_point)),
        left_(vdupq_n_s32(r.left)) {}

  QUANTRAIN_INLINE int32x4_t operator()(int32x4_t sum) const {
    const int32x4_t acc = vshlq_s32(sum, left_);
    return vaddq_s32(vrshlq_s32(vqdmulhq_s32(acc, m0_), minus_shift_), zero_point_);
  }

 private:
  int32x4_t m0_, minus_shift_, zero_point_, left_;
};
#endif

}  // namespace quantrain::kernels::simd
