#pragma once

#include "framework/kernels/simd/requantizer.hpp"

// Stores the sums of a tile, which has R rows of V vectors of outputs. p is a kernel's parameter
// struct. It has the members stride and outputs, and either acc, or y and requantize. A tile's
// first row lies `at` elements after the first row of p.acc or p.y.
namespace quantrain::kernels::simd {

/// Stores the sums of a panel's tiles unchanged.
template <class Arch, int V>
class SumsToMemory {
  using I = Ints<Arch>;

 public:
  QUANTRAIN_INLINE SumsToMemory(const auto& p, int64_t output)
      : acc_(p.acc + output), stride_(p.stride), columns_(p.outputs - output) {}

  template <int R>
  QUANTRAIN_INLINE void operator()(int64_t at, typename I::Int (&sums)[R][V]) const {
    int32_t* const to = acc_ + at;
    if (columns_ >= V * I::kLanes) {
      repeat<R>([&](auto r) QUANTRAIN_INLINE {
        repeat<V>([&](auto v)
                      QUANTRAIN_INLINE { I::store(to + r * stride_ + v * I::kLanes, sums[r][v]); });
      });
      return;
    }
    I::template store_columns<R, V>(to, stride_, sums, columns_);
  }

 private:
  int32_t* acc_;
  int64_t stride_;
  int64_t columns_;
};

/// Stores the sums of a panel's tiles, requantized by (8).
template <class Arch, int V, bool kUsual>
class CodesToMemory {
  using I = Ints<Arch>;

 public:
  QUANTRAIN_INLINE CodesToMemory(const auto& p, int64_t output)
      : clamp_{p.requantize.lo, p.requantize.hi},
        y_(p.y + output),
        stride_(p.stride),
        columns_(p.outputs - output) {
    for (int v = 0; v < V; ++v) {
      requantizers_[v] = Requantizer<Arch, kUsual>(p.requantize.from(output + v * I::kLanes));
    }
  }

  template <int R>
  QUANTRAIN_INLINE void operator()(int64_t at, typename I::Int (&sums)[R][V]) const {
    repeat<V>([&](auto v) QUANTRAIN_INLINE {
      const Requantizer<Arch, kUsual> requantizer = requantizers_[v];
      repeat<R>([&](auto r) QUANTRAIN_INLINE { sums[r][v] = requantizer(sums[r][v]); });
    });
    uint8_t* const to = y_ + at;
    if (columns_ >= V * I::kLanes) {
      I::template store_tile<R, V>(to, stride_, sums, clamp_);
      return;
    }
    I::template store_columns<R, V>(to, stride_, sums, clamp_, columns_);
  }

 private:
  Requantizer<Arch, kUsual> requantizers_[V];
  Clamp clamp_;
  uint8_t* y_;
  int64_t stride_;
  int64_t columns_;
};

}  // namespace quantrain::kernels::simd
