#pragma once

#include "framework/kernels/params.hpp"
#include "framework/kernels/simd/pack.ipp"

// The loop nest of all float products that run in tiles. A tile of rows x vectors of the result
// stays in registers. Lanes run along the columns, so there are no sums across lanes. In a
// call, the sum of each result is one chain of fused multiply-adds.
namespace quantrain::kernels::simd {

// Without this option, GCC packs the integers of neighbouring members into a vector register and
// stores them together. Reading such a member would wait for all multiply-adds in flight.
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/// If a call writes at most this many results, c stays in cache. Then prefetching the lines of c
/// costs more than it saves if sums have fewer than kFetchTerms terms.
inline constexpr int64_t kManyResults = 65536;
inline constexpr int64_t kFetchTerms = 64;

/// While the stores of a large tile wait in the processor's queue, the next tile's multiply-adds do
/// not fit into the queue. So sums of at most kLowTerms terms are computed in low tiles. The sums
/// of a low tile take at most kLowLines cache lines, rounded up to whole rows; only with AVX-512 do
/// larger tiles take more. With so few terms, the rows of b that low tiles read, at most 64 columns
/// each, stay in the first-level cache for several tiles.
inline constexpr int64_t kLowTerms = 96;
inline constexpr int64_t kLowLines = 14;

/// The number of rows of the largest tile. If the rows of matrix a lie kStep = 1 or 2 elements
/// apart, the tile reads them through one pointer. Otherwise kStep is 0, and each row has its own
/// pointer. On x86-64, more than 9 pointers do not fit in registers and would be loaded at each
/// step.
template <class Arch, int kVectors, int kStep>
constexpr int tile_rows() {
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
  return kVectors == 1 ? 4 : 2;  // with checked accesses, g++ 12 takes minutes for large tiles
#endif
  constexpr int kSums = kRegisters<Arch> == 32          ? (kStep > 0 && kVectors < 4 ? 28 : 24)
                        : Batch<float, Arch>::size == 8 ? 12
                                                        : 8;
  constexpr int kRows = kSums / kVectors;
  return kStep == 0 && kRows > 9 ? 9 : kRows;
}

/// A strip consists of the columns that one tile holds, beginning at column `first`. Its last
/// vector holds in_last columns, and b has b_in_last readable elements for this vector. The rows of
/// b are b_step elements apart. The rows of a segment begin at b + SegmentF32::b * segment_step. In
/// each of the runs [run, run_end), the strip covers `tiles` tiles, beginning at row i. If `clamps`
/// is set, results are clamped. If `fetches` is set, tiles of several vectors with kStep = 0
/// prefetch their lines of c before they compute their sums. Fetching strips (StripKind) always do.
struct StripF32 {
  const float* b;
  int64_t b_step, segment_step, first, in_last, b_in_last, run, run_end, i, tiles;
  bool clamps, fetches;
};

/// The last vector of a strip is whole (kWhole) or partial (kPart). A fetching strip (kFetching) is
/// a whole panel, and the only strip of its call. It prefetches the part of b that the next call
/// will read: kVectors cache lines in each row. Each of the last kVectors tiles of a run prefetches
/// one of these lines in every row. If tiles have two heights, the last kVectors tiles of each
/// height do so.
enum class StripKind { kWhole, kPart, kFetching };

template <class Arch, int kVectors>
inline constexpr bool kHasFetching = kPanelColumns == int64_t{kVectors} * Batch<float, Arch>::size;

/// Makes GCC hold v in a register. Otherwise GCC loads the vector again for each row of a low tile.
template <class T>
inline QUANTRAIN_INLINE void keep_in_register(T& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#else
  asm("" : "+w"(v));
#endif
}

/// Tiles of kRows rows x kVectors vectors of columns. If kStep is not 0, the rows of matrix a lie
/// kStep elements apart and need no pointers of their own.
template <class Arch, int kRows, int kVectors, int kStep, StripKind kKind>
struct TilesOfRowsF32 {
  using V = Batch<float, Arch>;
  static constexpr int kLanes = static_cast<int>(V::size);
  static constexpr bool kPart = kKind == StripKind::kPart;
  static constexpr bool kFetching = kKind == StripKind::kFetching;
  static constexpr int kLast = (kVectors - 1) * kLanes;

  /// Variables of the loops around the innermost loop. They are read from memory each time, which
  /// leaves more registers for the innermost loop.
  struct Kept {
    const TilesF32* p;
    const StripF32* s;
    const SegmentF32* segment;
    int64_t segments, run, tiles;
    int64_t row, a, c;  // the tile's first row, and the offsets where this row begins in a and c

    QUANTRAIN_INLINE int64_t row_step() const { return kStep > 0 ? kStep : p->a.row_step; }
  };

  /// Calls f(r, pointer to the start of row r in c) for each row r of the tile.
  template <class F>
  static QUANTRAIN_INLINE void for_rows(const Kept& kept, const F& f) {
    if (kStep == 0 && kept.p->c.rows != nullptr) {
      float* const* const rows = kept.p->c.rows + kept.row;
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) f(r, rows[r] + kept.c);
    } else {
      float* next = kept.p->c.first + kept.c;
      const int64_t step = kept.p->c.row_step;
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r, next += step) {
        asm volatile("" : "+r"(next));  // otherwise, GCC computes all pointers beforehand
        f(r, next);
      }
    }
  }

  static QUANTRAIN_INLINE V load_last(const float* from, int64_t n) {
    return kPart ? load_first<Arch>(from + kLast, n) : V::load_unaligned(from + kLast);
  }
  static QUANTRAIN_INLINE void store_last(V v, float* to, int64_t n) {
    if (kPart) return store_first<Arch>(to + kLast, v, n);
    v.store_unaligned(to + kLast);
  }

  /// Prefetches the cache lines of the tile's results, because stores wait for lines that no cache
  /// holds.
  static QUANTRAIN_INLINE void fetch_results(const Kept& kept) {
    for_rows(kept, [&](int, const float* c) QUANTRAIN_INLINE {
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + v * kLanes, 1);
    });
  }

  /// Computes the tile's sums.
  static QUANTRAIN_INLINE void sum_segments(Kept& kept,
                                            int64_t b_in_last,
                                            V (&sum)[kRows][kVectors]) {
    const float* a[kRows];
    if (kStep == 0 && kept.p->a.rows != nullptr) {
      const float* const* const rows = kept.p->a.rows + kept.row;
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) a[r] = rows[r] + kept.a;
    } else {
      a[0] = kept.p->a.first + kept.a;
      QUANTRAIN_UNROLL for (int r = 1; r < kRows; ++r) a[r] = a[r - 1] + kept.row_step();
    }
    // The address to prefetch next. Rows are too short for the processor to predict which row is
    // read next. Tiles of one vector do not prefetch: each of their multiply-adds needs a load, so
    // loads take longer than multiply-adds.
    const float* next = kept.p->a.rows == nullptr ? a[kRows - 1] + kept.p->a.row_step : a[0];
    int64_t next_step = kStep == 0 ? kRows : kept.p->a_step;
    if (kFetching && kept.tiles <= kVectors) {
      next = kept.s->b + (kVectors + kept.tiles - 1) * kLanes;
      next_step = kept.s->b_step;
    }
    kept.segment = kept.p->segment;
    for (kept.segments = kept.p->segments; kept.segments > 0; --kept.segments) {
      forget_registers(kept);
      const SegmentF32& segment = *kept.segment++;
      const int64_t b_step = kept.s->b_step;
      const float* from = kept.s->b + segment.b * kept.s->segment_step;
      const int64_t a_step = kept.p->a_step;
      const int64_t begin = segment.a;
      const int64_t end = begin + kept.p->length * a_step;
      for (int64_t k = begin; k != end; k += a_step, from += b_step) {
        V vectors[kVectors];
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
          vectors[v] =
              v + 1 < kVectors ? V::load_unaligned(from + v * kLanes) : load_last(from, b_in_last);
          if (kRows > 1) keep_in_register(vectors[v].data);
        }
        if ((kStep == 0 && kVectors > 1) || kFetching) {
          __builtin_prefetch(next, 0, 2);
          next += kFetching ? next_step : kRows;
        }
        const float* const near = a[0] + k;
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
          const V factor(kStep > 0 ? near[r * kStep] : a[r][k]);
          QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
            sum[r][v] = fused<Arch>(factor, vectors[v], sum[r][v]);
          }
        }
      }
    }
  }

  /// Adds the old c and the bias, and clamps.
  static QUANTRAIN_INLINE void end_sums(const Kept& kept,
                                        int64_t in_last,
                                        V (&sum)[kRows][kVectors]) {
    if (kept.p->accumulate) {
      for_rows(kept, [&, in_last](int r, const float* c) QUANTRAIN_INLINE {
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors - 1; ++v) {
          sum[r][v] = sum[r][v] + V::load_unaligned(c + v * kLanes);
        }
        sum[r][kVectors - 1] = sum[r][kVectors - 1] + load_last(c, in_last);
      });
    }
    if (kept.p->bias != nullptr) {
      const float* const bias = kept.p->bias + kept.s->first;
      QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
        const V add =
            v + 1 < kVectors ? V::load_unaligned(bias + v * kLanes) : load_last(bias, in_last);
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) sum[r][v] = sum[r][v] + add;
      }
    }
    if (kept.s->clamps) {
      const V lo(kept.p->lo);
      const V hi(kept.p->hi);
      QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
        QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) {
          // With the operands in this order, a NaN stays NaN.
          sum[r][v] = xsimd::min(hi, xsimd::max(lo, sum[r][v]));
        }
      }
    }
  }

  static void multiply(const TilesF32& product, const StripF32& strip) {
    // Clearing this struct first, or computing it anew for each tile, would take long in comparison
    // with a tile of short sums.
    Kept kept;
    kept.p = &product;
    kept.s = &strip;
    // Masks are computed from these two. They are read once, here, and passed by value: a mask that
    // is computed from memory after a tile's sums waits for all multiply-adds in flight.
    const int64_t in_last = strip.in_last;
    const int64_t b_in_last = strip.b_in_last;

    for (kept.run = strip.run; kept.run < kept.s->run_end; ++kept.run) {
      kept.row = kept.s->i;
      kept.a = kept.run * kept.p->a.run_step + kept.row * kept.row_step();
      kept.c = kept.run * kept.p->c.run_step + kept.row * kept.p->c.row_step + kept.p->column +
               kept.s->first;
      kept.tiles = kept.s->tiles;
      for (;;) {
        V sum[kRows][kVectors];
        QUANTRAIN_UNROLL for (int r = 0; r < kRows; ++r) {
          QUANTRAIN_UNROLL for (int v = 0; v < kVectors; ++v) sum[r][v] = V(0.0f);
        }
        if (kFetching || (kStep == 0 && kVectors > 1 && kept.s->fetches)) fetch_results(kept);
        sum_segments(kept, b_in_last, sum);
        forget_registers(kept);
        end_sums(kept, in_last, sum);
        for_rows(kept, [&, in_last](int r, float* c) QUANTRAIN_INLINE {
          QUANTRAIN_UNROLL for (int v = 0; v < kVectors - 1; ++v) {
            sum[r][v].store_unaligned(c + v * kLanes);
          }
          store_last(sum[r][kVectors - 1], c, in_last);
        });
        if (--kept.tiles == 0) break;
        kept.row += kRows;
        kept.a += kRows * kept.row_step();
        kept.c += kRows * kept.p->c.row_step;
      }
    }
  }
};

/// The kernels for tiles with 1 to kRows rows, for each kind of strip.
template <class Arch, int kVectors, int kStep>
struct TileKernelsF32 {
  static constexpr int kRows = tile_rows<Arch, kVectors, kStep>();
  using Kernel = void (*)(const TilesF32&, const StripF32&);
  Kernel of_rows[3][kRows];

  constexpr TileKernelsF32() : of_rows() { add<kRows>(); }
  template <int kUpTo>
  constexpr void add() {
    of_rows[0][kUpTo - 1] =
        TilesOfRowsF32<Arch, kUpTo, kVectors, kStep, StripKind::kWhole>::multiply;
    of_rows[1][kUpTo - 1] =
        TilesOfRowsF32<Arch, kUpTo, kVectors, kStep, StripKind::kPart>::multiply;
    if constexpr (kHasFetching<Arch, kVectors>) {
      of_rows[2][kUpTo - 1] =
          TilesOfRowsF32<Arch, kUpTo, kVectors, kStep, StripKind::kFetching>::multiply;
    }
    if constexpr (kUpTo > 1) add<kUpTo - 1>();
  }
};

/// Computes the columns [first, end) of a product in strips of kVectors vectors. There is at least
/// one column. All rows of a strip are computed before the next strip. The rows of a run are split
/// evenly into as few tiles as possible, or into low tiles. The heights of tiles differ by at most
/// one row.
template <class Arch, int kVectors, int kStep>
void strips_f32(const TilesF32& p, int64_t first, int64_t end) {
  static constexpr TileKernelsF32<Arch, kVectors, kStep> kKernels;
  constexpr int64_t kLanes = Batch<float, Arch>::size;
  constexpr int64_t kRows = kKernels.kRows;
  constexpr int64_t kWidth = kVectors * kLanes;
  constexpr int64_t kLowRows = (kLowLines * 16 + kWidth - 1) / kWidth;
  constexpr int64_t kLow = kRows < kLowRows ? kRows : kLowRows;
  if (p.m == 0) return;
  const int64_t terms = p.segments * p.length;
  int64_t tiles = p.m <= kRows ? 1 : (p.m + kRows - 1) / kRows;
  if (terms <= kLowTerms && p.m > kLow) {
    const int64_t low = (p.m + kLow - 1) / kLow;
    // If tiles have two heights, several runs are not written in order (see below). So for several
    // runs, low tiles are used only if all low tiles have the same height, or if the order is lost
    // anyway, because a split into as few tiles as possible also has two heights.
    if (p.runs == 1 || p.m % low == 0 || p.m % tiles != 0) tiles = low;
  }
  const int64_t rows = tiles == 1 ? p.m : p.m / tiles;
  const int64_t larger = p.m - rows * tiles;
  // If tiles have two heights, a few runs are computed together, as many as the caches hold: first
  // all tiles with one more row, then all other tiles.
  const int64_t runs = larger == 0 ? p.runs : 256 / p.m + 1;

  constexpr float kInfinity = __builtin_inff();
  const bool packed = p.b_step == 0;
  StripF32 s;  // not cleared first, because that takes longer than a tile of a small product
  s.b_step = packed ? kWidth : p.b_step;
  s.segment_step = packed ? s.b_step : 1;
  s.clamps = p.lo != -kInfinity || p.hi != kInfinity;
  s.fetches = terms >= kFetchTerms || p.m * p.runs * p.n > kManyResults;
  const bool fetching = kHasFetching<Arch, kVectors> && p.fetches_next;
  for (; first < end; first += kWidth) {
    const int64_t columns = end - first;
    s.b = p.b + first * (packed ? p.b_rows : 1);
    s.first = first;
    s.in_last = columns < kWidth ? columns - (kVectors - 1) * kLanes : kLanes;
    s.b_in_last = packed ? kLanes : s.in_last;
    const int kind = s.in_last < kLanes ? 1 : fetching ? 2 : 0;
    const auto* const of_rows = kKernels.of_rows[kind] + rows - 1;
    for (s.run = 0; s.run < p.runs; s.run = s.run_end) {
      s.run_end = p.runs - s.run > runs ? s.run + runs : p.runs;
      s.i = 0;
      if (larger > 0) {
        s.tiles = larger;
        of_rows[1](p, s);
        s.i = larger * (rows + 1);
      }
      s.tiles = tiles - larger;
      of_rows[0](p, s);
    }
  }
}

template <class Arch, int kVectors>
void columns_f32(const TilesF32& p, int64_t first, int64_t end) {
  if (p.a.rows == nullptr && p.a.row_step == 1) return strips_f32<Arch, kVectors, 1>(p, first, end);
  if constexpr (kVectors <= 2) {
    if (p.a.rows == nullptr && p.a.row_step == 2) {
      return strips_f32<Arch, kVectors, 2>(p, first, end);
    }
  }
  strips_f32<Arch, kVectors, 0>(p, first, end);
}

template <class Arch>
void tiles_f32(const TilesF32& p) {
  constexpr int64_t kLanes = Batch<float, Arch>::size;
  constexpr int kVectors = kTileVectors<Arch>;
  // Strips of kVectors vectors, then one narrower strip for the remaining vectors. The last vector
  // of the last strip may be partial.
  const int64_t lanes = (p.n + kLanes - 1) & -kLanes;
  const int64_t wide = lanes & -(kVectors * kLanes);
  if (wide > 0) columns_f32<Arch, kVectors>(p, 0, wide < p.n ? wide : p.n);
  const uint64_t vectors = static_cast<uint64_t>(lanes - wide) / kLanes;
  if (vectors == 1) columns_f32<Arch, 1>(p, wide, p.n);
  if constexpr (kVectors == 4) {
    if (vectors == 2) columns_f32<Arch, 2>(p, wide, p.n);
    if (vectors == 3) columns_f32<Arch, 3>(p, wide, p.n);
  }
}

#if !defined(__clang__)
#pragma GCC pop_options
#endif

}  // namespace quantrain::kernels::simd
