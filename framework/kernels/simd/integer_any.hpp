#pragma once

#include "framework/kernels/simd/batch.hpp"

// The operations of integer kernels on lanes of int32. xsimd lacks some of them, such as the halves
// of 64-bit products and dot products of bytes. There is one struct of operations for each
// architecture. Every function of these structs is always inlined, so it leaves no symbol. This
// matters because files with different compiler flags share a struct: the AVX-512 files share one,
// and the NEON files share another.
namespace quantrain::kernels::simd {
namespace {

// A separate function, because the compiler would otherwise vectorize the loop again for every
// tile. Each file that includes this header has its own copy of the function, because each file has
// its own flags.
template <class T>
QUANTRAIN_ONE_COPY void copy_columns(
    int64_t rows, int64_t columns, const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) to[row * to_stride + i] = from[row * from_stride + i];
  }
}

}  // namespace

/// The bounds of clamp(v, lo, hi), the last step of every requantization.
struct Clamp {
  int32_t lo, hi;
};

inline constexpr int32_t kSaturated = 1 << 30;

template <class Arch>
struct Ints;

/// Defaults that suit any instruction set: constants, and stores of tiles.
template <class Arch>
struct AnyInts {
  /// Whether a tile's sums leave registers free for constants and weights.
  static constexpr bool kManyRegisters = true;
  /// The widest panel, in vectors, that has special tiles for windows of 3x3 on one channel.
  static constexpr int kShortPanel = 0;
  /// Subtracted from the left operand of dot products (PanelLayout::offset).
  static constexpr int32_t kOffset = 0;
  /// Whether dot products multiply by single lanes of the left operand, so that one load of
  /// kLeftBytes bytes serves several steps of kStepBytes bytes. If so, the struct has a function
  /// Int dot_lane<step>(Int acc, Left x, Right w).
  static constexpr bool kByLane = false;
  /// Whether the panels of dot_u8s8 hold planes or octets (PanelLayout). For octets, the struct has
  /// the operations that octet_tile() calls.
  static constexpr bool kPlanes = false;
  static constexpr bool kOctets = false;
  /// The architecture whose products of fewer bits this one takes.
  using Few = Arch;
  /// The vectors of a panel for fewer bits (FewBits), or 0 if the instruction set has no such
  /// panels. Narrower panels have half of them.
  static constexpr int kFewPanel = 0;
  /// Which forms of such panels there are, apart from kBits.
  static constexpr bool kNarrow = false;
  static constexpr bool kFields = false;
  /// The most words of 32 bits whose counts count() may add up before add_counts(), or 0 if there
  /// is no limit.
  static constexpr int kCountedWords = 31;
  /// The fewest terms of a segment for which products of bits pay.
  static constexpr int kFewestBits = 32;
  static QUANTRAIN_INLINE bool counts_bits() { return true; }

  /// Makes the compiler hold v in a register here. Otherwise it may move or combine operations
  /// across this point, and run out of registers in the loop that computes v.
  template <class Int>
  static QUANTRAIN_INLINE void settle(Int& v) {
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#else
    __asm__("" : "+w"(v));
#endif
  }
  /// Stores R rows of V vectors of codes from 0 to 255. Rows are `stride` bytes apart.
  template <int R, int V, class Int>
  static QUANTRAIN_INLINE void store_tile(uint8_t* p,
                                          int64_t stride,
                                          const Int (&tile)[R][V],
                                          const Clamp& clamp) {
    using I = Ints<Arch>;
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      repeat<V>([&](auto v) QUANTRAIN_INLINE {
        I::store_codes(p + r * stride + v * I::kLanes, tile[r][v], clamp);
      });
    });
  }
  /// Stores the first `columns` elements of each of R rows of V vectors.
  template <int R, int V, class Int>
  static QUANTRAIN_INLINE void store_columns(int32_t* p,
                                             int64_t stride,
                                             const Int (&tile)[R][V],
                                             int64_t columns) {
    using I = Ints<Arch>;
    int32_t rows[R * V * I::kLanes];
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      repeat<V>([&](auto v)
                    QUANTRAIN_INLINE { I::store(rows + (r * V + v) * I::kLanes, tile[r][v]); });
    });
    copy_columns(R, columns, rows, V * I::kLanes, p, stride);
  }
  template <int R, int V, class Int>
  static QUANTRAIN_INLINE void store_columns(
      uint8_t* p, int64_t stride, const Int (&tile)[R][V], const Clamp& clamp, int64_t columns) {
    using I = Ints<Arch>;
    uint8_t rows[R * V * I::kLanes];
    I::template store_tile<R, V>(rows, V * I::kLanes, tile, clamp);
    copy_columns(R, columns, rows, V * I::kLanes, p, stride);
  }
};

}  // namespace quantrain::kernels::simd
