#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/batch.hpp"

// Depthwise convolutions with the usual windows. Windows have K = 3 or 5 columns, not dilated along
// the line, and begin S = 1 or 2 columns apart. Lanes run along the channels; weights [kh, kw, c].
namespace quantrain::kernels::simd {

/// Fewest and most pixels of a tile. The sums of a tile fit in the registers.
inline constexpr int kSmallestLineTile = 3;
inline constexpr int kLargestLineTile = 8;

/// The taps [first, end) that lie inside an axis of `size` elements, for a window that begins at
/// `start`.
struct TapsInside {
  int64_t first, end;
};
inline QUANTRAIN_INLINE TapsInside taps_inside(int64_t start,
                                               int64_t kernel,
                                               int64_t dilation,
                                               int64_t size) {
  // Loops cost less than divisions, because few windows lie at the border.
  TapsInside taps{0, kernel};
  while (taps.first < kernel && start + taps.first * dilation < 0) ++taps.first;
  while (taps.end > taps.first && start + (taps.end - 1) * dilation >= size) --taps.end;
  return taps;
}

/// Loads and stores all lanes of a vector.
template <class Arch>
struct AllLanes {
  using V = Batch<float, Arch>;
  static constexpr int kCount = static_cast<int>(V::size);
  QUANTRAIN_INLINE V load(const float* from) const { return V::load_unaligned(from); }
  QUANTRAIN_INLINE void store(float* to, V v) const { v.store_unaligned(to); }
};

#if defined(__AVX512F__)
/// Loads and stores the first eight of sixteen lanes. With a multiple of eight channels, these
/// eight usually lie in one cache line. A masked load of sixteen often crosses into the next line,
/// which takes twice as long.
template <class Arch>
struct HalfOfLanes {
  using V = Batch<float, Arch>;
  QUANTRAIN_INLINE V load(const float* from) const {
    return _mm512_zextps256_ps512(_mm256_loadu_ps(from));
  }
  QUANTRAIN_INLINE void store(float* to, V v) const {
    _mm256_storeu_ps(to, _mm512_castps512_ps256(v));
  }
};
#endif

/// One line of outputs. All its windows have the same `rows` rows of taps inside the image.
struct DepthwiseLine {
  int64_t rows;
  const float* x;    // the image's first column in the first of these rows
  int64_t row_step;  // from a row to the next
  const float* w;    // the weights of the first of these rows
  float* y;
};

/// Computes n neighbouring outputs of a line, from `begin` on, for one vector of channels. Loads
/// each float of x once and multiplies it by the weights of all outputs that read it. Each sum adds
/// its taps in the order of rows, then columns.
template <class Arch, int K, int S, int n, class At>
inline QUANTRAIN_INLINE_TILE void depthwise_tile(
    const DepthwiseF32& p, const At& at, const DepthwiseLine& line, int64_t begin, int64_t c) {
  using V = Batch<float, Arch>;
  constexpr int kColumns = (n - 1) * S + K;  // columns of x that the tile reads
  const PoolShape& s = p.pool;
  const int64_t left = begin * S - s.pad_w;
  // The columns [first, end) of the tile lie inside the image. Because the padding is less than K,
  // only the first and the last K - 1 columns can lie outside.
  const int64_t first = -left;
  const int64_t end = s.w - left;
  const float* from = line.x + left * s.c + c;
  const float* tap = line.w + c;
  float* const to = line.y + begin * s.c + c;
  V sums[n];
  repeat<n>([&](auto i)
                QUANTRAIN_INLINE { sums[i] = p.accumulate ? at.load(to + i * s.c) : V(0.0f); });
  for (int64_t row = 0; row < line.rows; ++row) {
    V weights[K];
    repeat<K>([&](auto k) QUANTRAIN_INLINE { weights[k] = at.load(tap + k * s.c); });
    repeat<kColumns>([&](auto q) QUANTRAIN_INLINE {
      if constexpr (q < K - 1) {
        if (q < first) return;
      }
      if constexpr (q > kColumns - K) {
        if (q >= end) return;
      }
      const V value = at.load(from + q * s.c);
      repeat<n>([&](auto i) QUANTRAIN_INLINE {
        if constexpr (q >= i * S && q < i * S + K) {
          sums[i] = fused<Arch>(value, weights[q - i * S], sums[i]);
        }
      });
    });
    from += line.row_step;
    tap += K * s.c;
  }
  const V lo(p.lo);
  const V hi(p.hi);
  const V bias = p.bias != nullptr ? at.load(p.bias + c) : V(0.0f);
  repeat<n>([&](auto i) QUANTRAIN_INLINE {
    if (p.bias != nullptr) sums[i] = sums[i] + bias;
    at.store(to + i * s.c, xsimd::min(hi, xsimd::max(lo, sums[i])));
  });
}

/// Computes the lines [begin, end) of the output. Splits a line evenly into tiles.
template <class Arch, int K, int S>
inline void depthwise_lines(
    const DepthwiseF32& p, int64_t begin, int64_t end, const float* x, const float* w, float* y) {
  constexpr int64_t kEach = Batch<float, Arch>::size;
  const PoolShape& s = p.pool;
  const int64_t tiles = (s.ow + kLargestLineTile - 1) / kLargestLineTile;
  const int64_t size = s.ow / tiles;
  const int64_t larger = s.ow % tiles;  // tiles of one pixel more
  for (int64_t i = begin; i < end; ++i) {
    const int64_t top = i % s.oh * s.stride_h - s.pad_h;
    const TapsInside rows = taps_inside(top, s.kh, s.dilation_h, s.h);
    const DepthwiseLine line{rows.end - rows.first,
                             x + (i / s.oh * s.h + top + rows.first * s.dilation_h) * s.w * s.c,
                             s.dilation_h * s.w * s.c,
                             w + rows.first * K * s.c,
                             y + i * s.ow * s.c};
    int64_t j = 0;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t n = tile < larger ? size + 1 : size;
      repeat<kLargestLineTile - kSmallestLineTile + 1>([&](auto more) QUANTRAIN_INLINE {
        constexpr int kPixels = kSmallestLineTile + more;
        if (n != kPixels) return;
        int64_t c = 0;
        for (; c + kEach <= s.c; c += kEach) {
          depthwise_tile<Arch, K, S, kPixels>(p, AllLanes<Arch>(), line, j, c);
        }
#if defined(__AVX512F__)
        if constexpr (kEach == 16) {
          if (c < s.c) depthwise_tile<Arch, K, S, kPixels>(p, HalfOfLanes<Arch>(), line, j, c);
        }
#endif
      });
      j += n;
    }
  }
}

/// Computes the lines [begin, end) of the output if this form suits the windows, the length of a
/// line and the number of channels. Returns whether it did. With fewer than three outputs in a
/// line, too few sums would run side by side. With a multiple of 256 channels, pixels lie a
/// multiple of a kilobyte apart, so their cache lines compete for a few places in the first-level
/// cache: a tile's cache lines may be evicted before the next vector of channels reads the rest of
/// them. Such channels take this form only with AVX-512 at stride 1. There it is still faster,
/// because a vector of 16 channels reads whole cache lines. At stride 2, a tile reads about twice
/// as many cache lines.
template <class Arch>
inline bool try_depthwise_lines(
    const DepthwiseF32& p, int64_t begin, int64_t end, const float* x, const float* w, float* y) {
  constexpr int64_t kEach = Batch<float, Arch>::size;
  const PoolShape& s = p.pool;
  if (s.dilation_w != 1 || s.pad_w >= s.kw || s.ow < kSmallestLineTile) return false;
  if (s.c % (kEach == 16 ? 8 : kEach) != 0) return false;
  if (s.c % 256 == 0 && (kEach < 16 || s.stride_w > 1)) return false;
  const auto is = [&](int64_t kernel, int64_t stride)
                      QUANTRAIN_INLINE { return s.kw == kernel && s.stride_w == stride; };
  if (is(3, 1)) return depthwise_lines<Arch, 3, 1>(p, begin, end, x, w, y), true;
  if (is(3, 2)) return depthwise_lines<Arch, 3, 2>(p, begin, end, x, w, y), true;
  if (is(5, 1)) return depthwise_lines<Arch, 5, 1>(p, begin, end, x, w, y), true;
  if (is(5, 2)) return depthwise_lines<Arch, 5, 2>(p, begin, end, x, w, y), true;
  return false;
}

}  // namespace quantrain::kernels::simd
