#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/integer_vector.hpp"

// Products of bytes: tiles of rows x vectors of outputs, sums in registers, then rule 8 on the way
// to memory.
namespace quantrain::kernels::simd {

/// Rule 8 before the zero point is added, for one vector of channels; saturated to +-kSaturated,
/// far outside of the codes. With high shifts only the upper halves of the 64-bit products matter:
/// (p >> 32) >> (shift - 32) = p >> shift.
template <class Arch, bool kHighShifts>
class Requantizer {
  using I = Ints<Arch>;
  using Int = typename I::Int;

 public:
  QUANTRAIN_INLINE Requantizer(const int32_t* m0, const int32_t* shift)
      : m0_even_(I::load(m0)), m0_odd_(I::odd(m0_even_)) {
    const Int shifts = I::load(shift);
    const Int odd = I::odd(shifts);
    const Int even = I::low_halves(shifts, I::zero());
    const Int one = I::set1_64(1);
    const Int minus_one = I::set1_64(-1);
    half_even_ = I::sllv64(one, I::add64(even, minus_one));
    half_odd_ = I::sllv64(one, I::add64(odd, minus_one));
    if constexpr (kHighShifts) {
      shift_even_ = I::add(shifts, I::set1(-32));
    } else {
      shift_even_ = even;
      shift_odd_ = odd;
    }
  }

  QUANTRAIN_INLINE Int operator()(Int acc) const {
    const Int even = I::add64(I::mul(acc, m0_even_), half_even_);
    const Int odd = I::add64(I::mul(I::odd(acc), m0_odd_), half_odd_);
    if constexpr (kHighShifts) {
      return I::srav(I::high_halves(even, odd), shift_even_);
    } else {
      return I::low_halves(I::saturate64(I::srav64(even, shift_even_)),
                           I::saturate64(I::srav64(odd, shift_odd_)));
    }
  }

 private:
  Int m0_even_, m0_odd_, half_even_, half_odd_, shift_even_, shift_odd_;
};

/// SSE2 has neither the product nor the shift.
template <bool kHighShifts>
class Requantizer<xsimd::sse2, kHighShifts> {
 public:
  QUANTRAIN_INLINE Requantizer(const int32_t* m0, const int32_t* shift) : m0_(m0), shift_(shift) {}

  QUANTRAIN_INLINE __m128i operator()(__m128i acc) const {
    alignas(16) int32_t lanes[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(lanes), acc);
    for (int i = 0; i < 4; ++i) {
      const int64_t half = int64_t{1} << (shift_[i] - 1);
      const int64_t code = (int64_t{lanes[i]} * m0_[i] + half) >> shift_[i];
      lanes[i] = static_cast<int32_t>(code > kSaturated    ? kSaturated
                                      : code < -kSaturated ? -kSaturated
                                                           : code);
    }
    return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
  }

 private:
  const int32_t* m0_;
  const int32_t* shift_;
};

template <class Arch>
void panel_layout_u8s8(int64_t outputs, PanelLayout* layout) {
  using I = Ints<Arch>;
  const int64_t vectors = (outputs + I::kLanes - 1) / I::kLanes;
  int64_t best = vectors < I::kMaxPanel ? vectors : I::kMaxPanel;
  // The widest panel with the least padding, but not so narrow that loads outnumber products.
  const auto padded = [&](int64_t v) { return (vectors + v - 1) / v * v; };
  for (int64_t v = best - 1; v >= 2; --v) {
    if (padded(v) < padded(best)) best = v;
  }
  *layout = {.width = (best < 1 ? 1 : best) * I::kLanes, .pairs = I::kPairs};
}

/// tile[r, o] = start[o] + the products of R rows and one panel of V vectors.
template <class Arch, int R, int V>
void dot_tile(const DotU8S8& p,
              const uint8_t* const* x,
              const int8_t* w,
              const int32_t* start,
              int32_t* tile) {
  using I = Ints<Arch>;
  typename I::Int acc[R][V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const typename I::Int first = I::load(start + v * I::kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r][v] = first;
  }
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    const uint8_t* left[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) left[r] = x[r] + segment * p.segment_step;
    for (int64_t j = 0; j < 4 * p.quads; j += 4) {
#pragma GCC unroll 2
      for (int step = 0; step < I::kSteps; ++step) {
        typename I::Int right[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) right[v] = I::load(w + v * I::kLanes * 4);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const typename I::Int broadcast = I::broadcast(left[r] + j, step);
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) acc[r][v] = I::dot(acc[r][v], broadcast, right[v]);
        }
        w += V * I::kLanes * 4;
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) I::store(tile + (r * V + v) * I::kLanes, acc[r][v]);
  }
}

/// Sums of a tile to memory: `rows` x `columns` of a panel that is `width` wide.
template <class Arch>
void store_sums(const int32_t* tile,
                int64_t rows,
                int64_t columns,
                int64_t width,
                int32_t* acc,
                int64_t stride) {
  using I = Ints<Arch>;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t c = 0;
    for (; c + I::kLanes <= columns; c += I::kLanes) {
      I::store(acc + r * stride + c, I::load(tile + r * width + c));
    }
    for (; c < columns; ++c) acc[r * stride + c] = tile[r * width + c];
  }
}

/// The same through rule 8.
template <class Arch, bool kHighShifts>
void store_requantized(const int32_t* tile,
                       int64_t rows,
                       int64_t columns,
                       int64_t width,
                       const RequantizeU8& q,
                       int64_t channel,
                       uint8_t* y,
                       int64_t stride) {
  using I = Ints<Arch>;
  const Codes codes{q.zero_point, q.lo, q.hi};
  for (int64_t c = 0; c < columns; c += I::kLanes) {
    const Requantizer<Arch, kHighShifts> requantizer(q.m0 + channel + c, q.shift + channel + c);
    const int64_t count = columns - c;
    if (count >= I::kLanes) {
      for (int64_t r = 0; r < rows; ++r) {
        I::store_codes(y + r * stride + c, requantizer(I::load(tile + r * width + c)), codes);
      }
      continue;
    }
    for (int64_t r = 0; r < rows; ++r) {
      uint8_t last[I::kLanes];
      I::store_codes(last, requantizer(I::load(tile + r * width + c)), codes);
      for (int64_t i = 0; i < count; ++i) y[r * stride + c + i] = last[i];
    }
  }
}

template <class Arch, int R, int V>
void dot_rows(const DotU8S8& p, const int8_t* w, int64_t output, int64_t& row) {
  using I = Ints<Arch>;
  constexpr int64_t kWidth = V * I::kLanes;
  const int64_t columns = p.outputs - output < kWidth ? p.outputs - output : kWidth;
  alignas(64) int32_t tile[R * kWidth];
  for (; row + R <= p.rows; row += R) {
    dot_tile<Arch, R, V>(p, p.x + row, w, p.start + output, tile);
    if (p.acc != nullptr) {
      store_sums<Arch>(tile, R, columns, kWidth, p.acc + row * p.stride + output, p.stride);
    } else if (p.requantize.high_shifts) {
      store_requantized<Arch, true>(
          tile, R, columns, kWidth, p.requantize, output, p.y + row * p.stride + output, p.stride);
    } else {
      store_requantized<Arch, false>(
          tile, R, columns, kWidth, p.requantize, output, p.y + row * p.stride + output, p.stride);
    }
  }
}

template <class Arch, int V>
void dot_panels(const DotU8S8& p) {
  using I = Ints<Arch>;
  constexpr int64_t kWidth = V * I::kLanes;
  const int64_t panel = p.segments * p.quads * 4 * kWidth * (I::kPairs ? 2 : 1);
  const int8_t* w = p.w;
  for (int64_t output = 0; output < p.outputs; output += kWidth, w += panel) {
    int64_t row = 0;
    dot_rows<Arch, I::rows(V), V>(p, w, output, row);
    dot_rows<Arch, 4, V>(p, w, output, row);
    dot_rows<Arch, 2, V>(p, w, output, row);
    dot_rows<Arch, 1, V>(p, w, output, row);
  }
}

template <class Arch>
void dot_u8s8(const DotU8S8& p) {
  using I = Ints<Arch>;
  switch (p.layout.width / I::kLanes) {
    case 1: return dot_panels<Arch, 1>(p);
    case 2: return dot_panels<Arch, 2>(p);
    case 3:
      if constexpr (I::kMaxPanel >= 3) dot_panels<Arch, 3>(p);
      return;
    case 4:
      if constexpr (I::kMaxPanel >= 4) dot_panels<Arch, 4>(p);
      return;
  }
}

template <class Arch>
void depthwise_u8s8(const DepthwiseU8S8& p) {
  using I = Ints<Arch>;
  const int64_t w_step = (p.channels + 15) / 16 * 16;
  for (int64_t c = 0; c < p.channels; c += I::kLanes) {
    const int64_t count = p.channels - c;
    for (int64_t pixel = 0; pixel < p.pixels; ++pixel) {
      const uint8_t* const x = p.x + pixel * p.stride_w * p.channels + c;
      typename I::Int acc = I::load(p.start + c);
      const int8_t* w = p.w + c;
      for (int64_t i = 0; i < p.kh; ++i) {
        for (int64_t j = 0; j < p.kw; ++j, w += w_step) {
          // Both are 16-bit values in 32-bit lanes, and the upper half of x is 0: this is their
          // product.
          acc =
              I::add(acc, I::madd(I::load_u8(x + i * p.row_step + j * p.channels), I::load_s8(w)));
        }
      }
      int32_t* const to = p.acc + pixel * p.channels + c;
      if (count >= I::kLanes) {
        I::store(to, acc);
      } else {
        int32_t last[I::kLanes];
        I::store(last, acc);
        for (int64_t i = 0; i < count; ++i) to[i] = last[i];
      }
    }
  }
}

}  // namespace quantrain::kernels::simd
