#pragma once

#include <immintrin.h>

#include "framework/kernels/simd/to_memory.hpp"

// Products of bytes by tiles of AMX. An instruction multiplies 16 rows of up to 64 bytes by weights
// for 16 outputs. A panel without pairs already holds these weights as a tile needs them: a row of
// the tile is the group of 4 of 16 outputs.
namespace quantrain::kernels::simd {

/// Rows of a tile, and bytes of each row.
inline constexpr int kTileRows = 16;
inline constexpr int kTileBytes = 64;

/// The operand of the instruction that sets the shapes of the eight tiles.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

/// The roles of the tiles: four of sums, then two of x and two of weights.
inline constexpr int kTileX = 4;
inline constexpr int kTileW = 6;

/// The instructions. Tests replace them by functions in C++.
template <class Arch>
struct TileUnit;

#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // Clang 14
/// Written as text, because the intrinsics of g++ 12 do not take a template's constant as a tile.
template <>
struct TileUnit<Amx> {
  static QUANTRAIN_INLINE void configure(const TileShapes& shapes) {
    __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
  }
  /// Processors save the tiles of a thread when they switch to another one, unless this was called.
  static QUANTRAIN_INLINE void release() { __asm__ volatile("tilerelease"); }
  template <int tile>
  static QUANTRAIN_INLINE void load(const void* rows, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(rows), "r"(stride), "i"(tile)
                     : "memory");
  }
  template <int tile>
  static QUANTRAIN_INLINE void store(void* rows, int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(rows), "r"(stride), "i"(tile)
                     : "memory");
  }
  /// sums += x * w, for unsigned x and signed w.
  template <int sums, int x, int w>
  static QUANTRAIN_INLINE void dot() {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(x), "i"(w));
  }
};
#endif

/// How a segment is cut into steps, each of one tile. If steps of 16 groups of 4 do not fill the
/// segment evenly, the last step begins earlier, and 0 replaces the bytes of x that the step before
/// it has counted.
struct TileSteps {
  int64_t each;      ///< steps of a segment
  int64_t quads;     ///< groups of 4 in a step
  int64_t repeated;  ///< groups of the last step that the step before it has counted

  QUANTRAIN_INLINE explicit TileSteps(int64_t segment)
      : each((segment + kTileRows - 1) / kTileRows),
        quads(segment % each == 0 ? segment / each : kTileRows),
        repeated(each * quads - segment) {}
};

/// A step of a sum.
struct TileStep {
  int64_t segment = 0, in_segment = 0;

  QUANTRAIN_INLINE void next(const TileSteps& steps) {
    if (++in_segment < steps.each) return;
    in_segment = 0;
    ++segment;
  }
  QUANTRAIN_INLINE bool repeats(const TileSteps& steps) const {
    return steps.repeated > 0 && in_segment == steps.each - 1;
  }
  /// The first group of 4 in the segment.
  QUANTRAIN_INLINE int64_t quad(const TileSteps& steps) const {
    return in_segment * steps.quads - (repeats(steps) ? steps.repeated : 0);
  }
};

/// Copies of the bytes of x that two steps multiply, and the sums of two blocks. Copies of
/// different steps and rows differ in the lowest 12 bits of their addresses: otherwise loads would
/// wait for stores to the other step's copies.
struct alignas(64) TileScratch {
  uint8_t x[2][kTileX / 2][kTileRows * kTileBytes];
  int32_t sums[2][kTileX * kTileRows * kTileRows];
};

/// Copies bytes [first, bytes) of each row, from x[i] + at, to rows of kTileBytes bytes. The bytes
/// before them become 0.
template <class Arch>
QUANTRAIN_ONE_COPY void copy_step(
    int64_t rows, const uint8_t* const* x, int64_t at, int64_t first, int64_t bytes, uint8_t* to) {
  using I = Ints<Arch>;
  const uint64_t mask = ~uint64_t{0} >> (kTileBytes - bytes) & ~uint64_t{0} << first;
  for (int64_t i = 0; i < rows; i += 4, to += 4 * kTileBytes) {
    repeat<4>([&](auto r) QUANTRAIN_INLINE {
      I::store(to + r * kTileBytes, I::load_bytes(mask, x[i + r] + at));
    });
  }
}

/// Whether the rows of each of some tiles are evenly spaced in memory. If so, sets steps[i] to the
/// bytes from a row of tile i to the next one.
template <class Arch>
QUANTRAIN_ONE_COPY bool are_even(int tiles, const uint8_t* const* x, int64_t* steps) {
  for (int tile = 0; tile < tiles; ++tile, x += kTileRows) {
    steps[tile] = x[1] - x[0];
    for (int i = 2; i < kTileRows; ++i) {
      if (x[i] - x[i - 1] != steps[tile]) return false;
    }
  }
  return true;
}

/// The sums of a block of rows, C tiles wide, that are still to be stored.
template <class Arch, int C>
class TileSums {
  using I = Ints<Arch>;

 public:
  TileSums(const DotU8S8& p, int64_t output, int64_t row, int64_t rows, const int32_t* sums)
      : to_memory_(p, output), at_(row * p.stride), stride_(p.stride), rows_(rows), sums_(sums) {}

  int64_t rows() const { return rows_; }
  /// Stores the next rows, at least one; a multiple of kStored.
  QUANTRAIN_ONE_COPY void store(int64_t rows) {
    // Constants that `to_memory_` holds stay in registers.
    const EitherToMemory<Arch, C>& to_memory = to_memory_;
    const int64_t stride = stride_;
    const int64_t end = at_ + rows * stride;
    const int32_t* from = sums_;
    for (int64_t at = at_; at < end; at += kStored * stride, from += kStored * C * kTileRows) {
      typename I::Int part[kStored][C];
      repeat<kStored * C>(
          [&](auto i) QUANTRAIN_INLINE { part[i / C][i % C] = I::load(from + i * kTileRows); });
      to_memory.template operator()<kStored>(at, part);
    }
    at_ = end;
    sums_ = from;
    rows_ -= rows;
  }

  static constexpr int kStored = 4;

 private:
  EitherToMemory<Arch, C> to_memory_;
  int64_t at_, stride_, rows_;
  const int32_t* sums_;
};

/// The sums of R tiles of rows and C tiles of outputs, in rows of C * kTileRows numbers. Meanwhile,
/// it stores the sums of the block before: the unit that multiplies tiles works on its own.
template <class Arch, int R, int C>
QUANTRAIN_ONE_COPY void tile_sums(const DotU8S8& p,
                                  const TileSteps& steps,
                                  const uint8_t* const* x,
                                  const int8_t* w,
                                  const int32_t* start,
                                  TileSums<Arch, C>& before,
                                  TileScratch& scratch,
                                  int32_t* sums) {
  using Unit = TileUnit<Arch>;
  static_assert(R <= 2 && C <= 2);
  const int64_t width = 4 * p.layout.width;
  const int64_t count = p.segments * steps.each;
  // Rows of the block before that each step stores, so that none are left at the end.
  const int64_t stored = (before.rows() / before.kStored + count - 1) / count * before.kStored;
  int64_t row_steps[R];
  const bool even = are_even<Arch>(R, x, row_steps);
  repeat<R * C>([&](auto tile) QUANTRAIN_INLINE {
    Unit::template load<tile>(start + tile % C * kTileRows, 0);
  });
  // Rows that are not evenly spaced are copied. So are the bytes of a step that repeats some.
  const auto copy = [&](const TileStep& step, int64_t i) QUANTRAIN_INLINE {
    const bool repeats = step.repeats(steps);
    if (even && !repeats) return;
    copy_step<Arch>(R * kTileRows,
                    x,
                    step.segment * p.segment_step + 4 * step.quad(steps),
                    repeats ? 4 * steps.repeated : 0,
                    4 * steps.quads,
                    scratch.x[i % 2][0]);
  };
  // Each step is copied while the step before it is multiplied: loads of tiles wait for stores.
  TileStep step;
  TileStep next;
  copy(step, 0);
  for (int64_t i = 0; i < count; ++i, step = next) {
    next.next(steps);
    if (i + 1 < count) copy(next, i + 1);
    const int64_t quad = step.quad(steps);
    const bool in_place = even && !step.repeats(steps);
    const int64_t at = step.segment * p.segment_step + 4 * quad;
    const int8_t* const weights = w + (step.segment * p.quads + quad) * width;
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      Unit::template load<kTileX + r>(in_place ? x[r * kTileRows] + at : scratch.x[i % 2][r],
                                      in_place ? row_steps[r] : kTileBytes);
    });
    repeat<C>([&](auto c) QUANTRAIN_INLINE {
      Unit::template load<kTileW + c>(weights + c * kTileBytes, width);
      repeat<R>([&](auto r)
                    QUANTRAIN_INLINE { Unit::template dot<r * C + c, kTileX + r, kTileW + c>(); });
    });
    if (before.rows() > 0) before.store(before.rows() < stored ? before.rows() : stored);
  }
  repeat<R * C>([&](auto tile) QUANTRAIN_INLINE {
    Unit::template store<tile>(sums + (tile / C * kTileRows * C + tile % C) * kTileRows,
                               C * kTileBytes);
  });
}

/// All rows, and columns of each panel that C tiles of outputs fill: pairs of vectors, or the last
/// one. A block has one or two tiles of rows. If the rows do not fill the last block, it begins
/// earlier, and some rows are computed again.
template <class Arch, int C>
void tile_columns(const DotU8S8& p, const TileSteps& steps, TileScratch& scratch) {
  const int64_t width = p.layout.width;
  TileSums<Arch, C> before(p, 0, 0, 0, nullptr);
  int buffer = 0;
  const int8_t* panel = p.w;
  for (int64_t first = 0; first < p.outputs; first += width, panel += p.panel) {
    int64_t column = C == 2 ? 0 : width - kTileRows;
    for (; column + C * kTileRows <= width && first + column < p.outputs; column += C * kTileRows) {
      const int64_t output = first + column;
      for (int64_t row = 0; row < p.rows;) {
        const bool two = p.rows - row > kTileRows && p.rows >= 2 * kTileRows;
        const int64_t rows = two ? 2 * kTileRows : kTileRows;
        if (row > p.rows - rows) row = p.rows - rows;
        (two ? tile_sums<Arch, 2, C> : tile_sums<Arch, 1, C>)(p,
                                                              steps,
                                                              p.x + row,
                                                              panel + 4 * column,
                                                              p.start + output,
                                                              before,
                                                              scratch,
                                                              scratch.sums[buffer]);
        before = TileSums<Arch, C>(p, output, row, rows, scratch.sums[buffer]);
        buffer ^= 1;
        row += rows;
      }
    }
  }
  if (before.rows() > 0) before.store(before.rows());
}

/// Whether dot_tiles() can compute p and is faster than dot products of vectors.
inline QUANTRAIN_INLINE bool takes_tiles(const DotU8S8& p) {
  const int64_t least = p.rows < kFewestTileRows ? kManyTileQuads : kFewestTileQuads;
  return p.layout.few == FewBits::kNone && p.rows >= kTileRows && p.segments * p.quads >= least;
}

/// dot_u8s8 for bytes, at least kTileRows rows and one group of 4.
template <class Arch>
void dot_tiles(const DotU8S8& p) {
  const TileSteps steps(p.quads);
  TileShapes shapes;
  for (int tile = 0; tile < kTileW + 2; ++tile) {
    const bool is_x = tile >= kTileX && tile < kTileW;
    shapes.rows[tile] = static_cast<uint8_t>(tile < kTileW ? kTileRows : steps.quads);
    shapes.bytes[tile] = static_cast<uint16_t>(is_x ? 4 * steps.quads : kTileBytes);
  }
  TileUnit<Arch>::configure(shapes);
  TileScratch scratch;
  if (p.layout.width >= 2 * kTileRows) tile_columns<Arch, 2>(p, steps, scratch);
  if (p.layout.width % (2 * kTileRows) != 0) tile_columns<Arch, 1>(p, steps, scratch);
  TileUnit<Arch>::release();
}

}  // namespace quantrain::kernels::simd
