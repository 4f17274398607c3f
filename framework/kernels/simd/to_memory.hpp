#pragma once

#include <new>

#include "framework/kernels/simd/requantizer.hpp"

// Stores the sums of a tile, which has R rows of V vectors of outputs. p is a kernel's parameter
// struct. All classes read its members stride and outputs. Those that store sums also read acc, and
// those that store codes also read y and requantize. A tile's first row lies `at` elements after
// the first row of p.acc or p.y.
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
    if (columns_ >= V * I::kLanes) return whole<R>(at, sums);
    I::template store_columns<R, V>(acc_ + at, stride_, sums, columns_);
  }

  /// The same without a check, for a panel that has all V * kLanes outputs.
  template <int R>
  QUANTRAIN_INLINE void whole(int64_t at, typename I::Int (&sums)[R][V]) const {
    int32_t* const to = acc_ + at;
    repeat<R>([&](auto r) QUANTRAIN_INLINE {
      repeat<V>([&](auto v)
                    QUANTRAIN_INLINE { I::store(to + r * stride_ + v * I::kLanes, sums[r][v]); });
    });
  }

 private:
  int32_t* acc_;
  int64_t stride_;
  int64_t columns_;
};

/// Stores the sums of a panel's tiles, requantized by (8). RequantizeU8::usual must be set.
template <class Arch, int V>
class CodesToMemory {
  using I = Ints<Arch>;

 public:
  QUANTRAIN_INLINE CodesToMemory(const auto& p, int64_t output)
      : clamp_{p.requantize.lo, p.requantize.hi},
        y_(p.y + output),
        stride_(p.stride),
        columns_(p.outputs - output) {
    for (int v = 0; v < V; ++v) {
      requantizers_[v] = Requantizer<Arch, true>(p.requantize.from(output + v * I::kLanes));
    }
  }

  template <int R>
  QUANTRAIN_INLINE void operator()(int64_t at, typename I::Int (&sums)[R][V]) const {
    requantize(sums);
    if (columns_ >= V * I::kLanes) {
      I::template store_tile<R, V>(y_ + at, stride_, sums, clamp_);
      return;
    }
    I::template store_columns<R, V>(y_ + at, stride_, sums, clamp_, columns_);
  }

  /// The same without a check, for a panel that has all V * kLanes outputs.
  template <int R>
  QUANTRAIN_INLINE void whole(int64_t at, typename I::Int (&sums)[R][V]) const {
    requantize(sums);
    I::template store_tile<R, V>(y_ + at, stride_, sums, clamp_);
  }

 private:
  template <int R>
  QUANTRAIN_INLINE void requantize(typename I::Int (&sums)[R][V]) const {
    repeat<V>([&](auto v) QUANTRAIN_INLINE {
      const Requantizer<Arch, true> requantizer = requantizers_[v];
      repeat<R>([&](auto r) QUANTRAIN_INLINE { sums[r][v] = requantizer(sums[r][v]); });
    });
  }

  Requantizer<Arch, true> requantizers_[V];
  Clamp clamp_;
  uint8_t* y_;
  int64_t stride_;
  int64_t columns_;
};

/// Stores sums if p.acc is not null, else codes.
template <class Arch, int V>
class EitherToMemory {
 public:
  QUANTRAIN_INLINE EitherToMemory(const auto& p, int64_t output) : is_sums_(p.acc != nullptr) {
    if (is_sums_) {
      new (&sums_) SumsToMemory<Arch, V>(p, output);
    } else {
      new (&codes_) CodesToMemory<Arch, V>(p, output);
    }
  }

  template <int R>
  QUANTRAIN_INLINE void operator()(int64_t at, typename Ints<Arch>::Int (&sums)[R][V]) const {
    if (is_sums_) {
      sums_.template operator()<R>(at, sums);
    } else {
      codes_.template operator()<R>(at, sums);
    }
  }

  QUANTRAIN_INLINE const SumsToMemory<Arch, V>& sums() const { return sums_; }
  QUANTRAIN_INLINE const CodesToMemory<Arch, V>& codes() const { return codes_; }

 private:
  bool is_sums_;
  union {
    SumsToMemory<Arch, V> sums_;
    CodesToMemory<Arch, V> codes_;
  };
};

}  // namespace quantrain::kernels::simd
