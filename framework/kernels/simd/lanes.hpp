#pragma once

#include "framework/kernels/simd/batch.hpp"

// 16 lanes of float32, whatever the width of the machine's vectors. So sums in lanes add their
// terms in the same order on every instruction set.
namespace quantrain::kernels::simd {

template <class Arch>
struct Lanes {
  using V = Batch<float, Arch>;
  using Bool = xsimd::batch_bool<float, Arch>;
  static constexpr int kWidth = 16;
  static constexpr int kEach = static_cast<int>(V::size);
  static constexpr int kParts = kWidth / kEach;

  /// One truth value for each lane.
  struct Mask {
    Bool part[kParts];

    QUANTRAIN_INLINE friend Mask operator&(Mask a, const Mask& b) {
      for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] & b.part[i];
      return a;
    }
    QUANTRAIN_INLINE friend Mask operator|(Mask a, const Mask& b) {
      for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] | b.part[i];
      return a;
    }
    QUANTRAIN_INLINE uint32_t bits() const {
      uint32_t bits = 0;
      for (int i = 0; i < kParts; ++i) bits |= lane_bits<Arch>(part[i]) << (i * kEach);
      return bits;
    }
  };

  V part[kParts];

  Lanes() = default;
  QUANTRAIN_INLINE explicit Lanes(float value) {
    for (int i = 0; i < kParts; ++i) part[i] = V(value);
  }
  QUANTRAIN_INLINE static Lanes load(const float* from) {
    Lanes lanes;
    for (int i = 0; i < kParts; ++i) lanes.part[i] = V::load_unaligned(from + i * kEach);
    return lanes;
  }
  QUANTRAIN_INLINE void store(float* to) const {
    for (int i = 0; i < kParts; ++i) part[i].store_unaligned(to + i * kEach);
  }

#define QUANTRAIN_OPERATOR(name)                                           \
  QUANTRAIN_INLINE friend Lanes operator name(Lanes a, const Lanes& b) {   \
    for (int i = 0; i < kParts; ++i) a.part[i] = a.part[i] name b.part[i]; \
    return a;                                                              \
  }
  QUANTRAIN_OPERATOR(+)
  QUANTRAIN_OPERATOR(-)
  QUANTRAIN_OPERATOR(*)
#undef QUANTRAIN_OPERATOR
  QUANTRAIN_INLINE friend Lanes operator/(Lanes a, const Lanes& b) {
    for (int i = 0; i < kParts; ++i) a.part[i] = quotient<Arch>(a.part[i], b.part[i]);
    return a;
  }

#define QUANTRAIN_COMPARISON(name)                                             \
  QUANTRAIN_INLINE friend Mask operator name(const Lanes& a, const Lanes& b) { \
    Mask mask;                                                                 \
    for (int i = 0; i < kParts; ++i) mask.part[i] = a.part[i] name b.part[i];  \
    return mask;                                                               \
  }
  QUANTRAIN_COMPARISON(<)
  QUANTRAIN_COMPARISON(>)
  QUANTRAIN_COMPARISON(==)
#undef QUANTRAIN_COMPARISON

  /// a * b + c.
  QUANTRAIN_INLINE friend Lanes fma(const Lanes& a, const Lanes& b, Lanes c) {
    for (int i = 0; i < kParts; ++i) c.part[i] = fused<Arch>(a.part[i], b.part[i], c.part[i]);
    return c;
  }
  // If an operand is NaN, the result is the second operand on x86 and NaN on Arm.
  QUANTRAIN_INLINE friend Lanes min(Lanes a, const Lanes& b) {
    for (int i = 0; i < kParts; ++i) a.part[i] = xsimd::min(a.part[i], b.part[i]);
    return a;
  }
  QUANTRAIN_INLINE friend Lanes max(Lanes a, const Lanes& b) {
    for (int i = 0; i < kParts; ++i) a.part[i] = xsimd::max(a.part[i], b.part[i]);
    return a;
  }
  QUANTRAIN_INLINE friend Mask isnan(const Lanes& a) {
    Mask mask;
    for (int i = 0; i < kParts; ++i) mask.part[i] = xsimd::isnan(a.part[i]);
    return mask;
  }
  QUANTRAIN_INLINE friend Lanes sqrt(Lanes a) {
    for (int i = 0; i < kParts; ++i) a.part[i] = square_root<Arch>(a.part[i]);
    return a;
  }
  QUANTRAIN_INLINE friend Lanes select(const Mask& mask, Lanes a, const Lanes& b) {
    for (int i = 0; i < kParts; ++i) a.part[i] = xsimd::select(mask.part[i], a.part[i], b.part[i]);
    return a;
  }
};

/// a * b + c. It has the name of the function for one vector (batch.hpp), for templates that take
/// vectors or lanes.
template <class Arch>
inline QUANTRAIN_INLINE Lanes<Arch> fused(const Lanes<Arch>& a,
                                          const Lanes<Arch>& b,
                                          Lanes<Arch> c) {
  for (int i = 0; i < Lanes<Arch>::kParts; ++i) {
    c.part[i] = fused<Arch>(a.part[i], b.part[i], c.part[i]);
  }
  return c;
}

/// Combines all lanes with f in a binary tree.
template <class Arch, class F>
inline QUANTRAIN_INLINE float join(const Lanes<Arch>& lanes, F&& f) {
  float values[16];
  lanes.store(values);
  for (int step = 8; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) values[i] = f(values[i], values[i + step]);
  }
  return values[0];
}

template <class Arch>
inline QUANTRAIN_INLINE float sum(const Lanes<Arch>& lanes) {
  return join(lanes, [](float a, float b) QUANTRAIN_INLINE { return a + b; });
}

/// The most terms of one chain of additions. The rounding error of a chain grows with its length.
inline constexpr int64_t kLongestChain = 128;

/// Splits n terms into blocks of `longest` terms; the last block may have fewer. Calls
/// part(begin, end) -> Sum for each block. `part` may sum a block in a few chains side by side. The
/// results are added up in a binary tree whose shape depends on the number of blocks alone.
/// Partial sums wait on a stack. As in a binary counter, two of them are added as soon as they
/// cover the same number of blocks.
template <class Sum, class Part>
inline QUANTRAIN_INLINE Sum sum_of_parts(int64_t n, int64_t longest, const Part& part) {
  Sum waiting[64];
  int depth = 0;
  for (int64_t block = 0, begin = 0;; ++block, begin += longest) {
    const bool last = n - begin <= longest;
    Sum sum = part(begin, last ? n : begin + longest);
    for (int64_t i = block; (i & 1) != 0; i >>= 1) sum = waiting[--depth] + sum;
    if (last) {
      while (depth > 0) sum = waiting[--depth] + sum;
      return sum;
    }
    waiting[depth++] = sum;
  }
}

/// `Whole` reads and writes 16 elements. `Part` does the same for the elements that are left at the
/// end, fewer than 16. uint16 values are converted to floats, which is exact.
template <class Arch>
struct Whole {
  static constexpr int kCount = 16;
  int count() const { return 16; }
  QUANTRAIN_INLINE Lanes<Arch> load(const float* from, float = 0.0f) const {
    return Lanes<Arch>::load(from);
  }
  QUANTRAIN_INLINE Lanes<Arch> load(const uint16_t* from) const {
    float values[16];
    for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(from[i]);
    return Lanes<Arch>::load(values);
  }
  QUANTRAIN_INLINE void store(float* to, const Lanes<Arch>& lanes) const { lanes.store(to); }
  QUANTRAIN_INLINE void store(uint16_t* to, const Lanes<Arch>& lanes) const {
    float values[16];
    lanes.store(values);
    for (int i = 0; i < 16; ++i) to[i] = static_cast<uint16_t>(static_cast<int32_t>(values[i]));
  }
};

template <class Arch>
struct Part {
  int elements;
  int count() const { return elements; }
  /// Missing lanes become `fill`.
  QUANTRAIN_INLINE Lanes<Arch> load(const float* from, float fill = 0.0f) const {
    using L = Lanes<Arch>;
    if (fill != 0.0f) {
      float values[16];
      for (int i = 0; i < 16; ++i) values[i] = i < elements ? from[i] : fill;
      return L::load(values);
    }
    L lanes(0.0f);
    for (int i = 0; i < L::kParts; ++i) {
      const int left = elements - i * L::kEach;
      if (left > 0)
        lanes.part[i] = load_first<Arch>(from + i * L::kEach, left < L::kEach ? left : L::kEach);
    }
    return lanes;
  }
  QUANTRAIN_INLINE Lanes<Arch> load(const uint16_t* from) const {
    uint16_t values[16] = {};
    for (int i = 0; i < elements; ++i) values[i] = from[i];
    return Whole<Arch>().load(values);
  }
  QUANTRAIN_INLINE void store(float* to, const Lanes<Arch>& lanes) const {
    using L = Lanes<Arch>;
    for (int i = 0; i < L::kParts; ++i) {
      const int left = elements - i * L::kEach;
      if (left > 0)
        store_first<Arch>(to + i * L::kEach, lanes.part[i], left < L::kEach ? left : L::kEach);
    }
  }
  QUANTRAIN_INLINE void store(uint16_t* to, const Lanes<Arch>& lanes) const {
    uint16_t values[16];
    Whole<Arch>().store(values, lanes);
    for (int i = 0; i < elements; ++i) to[i] = values[i];
  }
};

/// Calls f(i, Whole) for every 16 of n elements, and f(i, Part) for the rest.
template <class Arch, class F>
inline QUANTRAIN_INLINE void for_lanes(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) f(i, Whole<Arch>{});
  if (i < n) f(i, Part<Arch>{static_cast<int>(n - i)});
}

/// e^x to about one unit in the last place. x = n ln 2 + r with |r| <= ln 2 / 2. e^r is a
/// polynomial of degree 7 in r, with the coefficients of Cephes' expf. The polynomial is multiplied
/// by 2^n in two factors, so that results may be subnormal or infinite.
template <class Arch>
inline QUANTRAIN_INLINE Lanes<Arch> exp(const Lanes<Arch>& at) {
  using L = Lanes<Arch>;
  using Ints = Batch<int32_t, Arch>;
  const L x = max(L(-104.0f), min(L(89.0f), at));
  const L shifted = fma(x, L(1.44269504f), L(12582912.0f));  // 1.5 * 2^23: the low bits are n
  const L n = shifted - L(12582912.0f);
  L r = fma(n, L(-0.693359375f), x);
  r = fma(n, L(2.12194440e-4f), r);
  L p = fma(L(1.9875691500e-4f), r, L(1.3981999507e-3f));
  p = fma(p, r, L(8.3334519073e-3f));
  p = fma(p, r, L(4.1665795894e-2f));
  p = fma(p, r, L(1.6666665459e-1f));
  p = fma(p, r, L(5.0000001201e-1f));
  p = fma(p * r, r, r) + L(1.0f);
  for (int i = 0; i < L::kParts; ++i) {
    const Ints whole = as_ints<Arch>(shifted.part[i]) - Ints(0x4b400000);
    const Ints half = whole >> 1;
    const auto low = as_floats<Arch>((half + Ints(127)) << 23);
    const auto high = as_floats<Arch>((whole - half + Ints(127)) << 23);
    p.part[i] = p.part[i] * low * high;
  }
  return p;
}

}  // namespace quantrain::kernels::simd
