#pragma once

#include "framework/kernels/simd/integer.ipp"
#include "framework/kernels/simd/windows.hpp"

// Pooling of codes with lanes along the channels.
namespace quantrain::kernels::simd {

/// Max pooling of sixteen channels, which also gives the position of each maximum. A code and its
/// position are packed into one number, a Key. The larger Key has the larger code or, if the codes
/// are equal, the earlier position. Vectors are those of the compiler's vector extension.
template <class Key>
struct PoolKeys {
  typedef uint8_t Bytes __attribute__((vector_size(16)));
  typedef uint16_t Shorts __attribute__((vector_size(32)));
  typedef Key Keys __attribute__((vector_size(16 * sizeof(Key))));
  static constexpr int kShift = 8 * (sizeof(Key) / 2);
  static constexpr Key kLast = (Key{1} << kShift) - 1;  // position 0 has the highest rank

  Keys best;

  QUANTRAIN_INLINE PoolKeys() : best{} {}

  QUANTRAIN_INLINE void take(const uint8_t* from, int64_t position) {
    Bytes codes;
    __builtin_memcpy(&codes, from, sizeof codes);
    const Keys keys = (__builtin_convertvector(codes, Keys) << kShift) |
                      static_cast<Key>(kLast - static_cast<Key>(position));
    best = keys > best ? keys : best;
  }
  QUANTRAIN_INLINE void give(uint8_t* y, uint16_t* position) const {
    const Bytes codes = __builtin_convertvector(best >> kShift, Bytes);
    const Shorts positions = __builtin_convertvector(kLast - (best & kLast), Shorts);
    __builtin_memcpy(y, &codes, sizeof codes);
    __builtin_memcpy(position, &positions, sizeof positions);
  }
};

template <class Arch, class Key>
inline QUANTRAIN_INLINE void max_with_position(const PoolShape& s,
                                               int64_t begin,
                                               int64_t end,
                                               const uint8_t* x,
                                               uint8_t* y,
                                               uint16_t* position) {
  const auto pool = [&](int64_t pixel, const auto& window, int64_t image) QUANTRAIN_INLINE {
    for (int64_t c = 0; c < s.c; c += 16) {
      const int64_t count = s.c - c;
      PoolKeys<Key> keys;
      for (int64_t h = window.top; h < window.bottom; ++h) {
        for (int64_t w = window.left; w < window.right; ++w) {
          const uint8_t* const from = x + image + (h * s.w + w) * s.c + c;
          uint8_t last[16] = {};
          if (count < 16) copy_few(count, from, last);
          keys.take(count < 16 ? last : from, window.position(h, w));
        }
      }
      uint8_t codes[16];
      uint16_t positions[16];
      keys.give(count < 16 ? codes : y + pixel + c, count < 16 ? positions : position + pixel + c);
      if (count >= 16) continue;
      copy_few(count, codes, y + pixel + c);
      copy_few(count, positions, position + pixel + c);
    }
  };
  for_windows<Arch>(s, begin, end, pool);
}

template <class Arch>
void max_pool2d_u8(const PoolShape& s,
                   int64_t begin,
                   int64_t end,
                   const uint8_t* x,
                   uint8_t* y,
                   uint16_t* position) {
  if (position != nullptr) {
    return s.kh * s.kw <= 256 ? max_with_position<Arch, uint16_t>(s, begin, end, x, y, position)
                              : max_with_position<Arch, uint32_t>(s, begin, end, x, y, position);
  }
  using I = Ints<Arch>;
  const auto pool = [&](int64_t pixel, const auto& window, int64_t image) QUANTRAIN_INLINE {
    const uint8_t* const from = x + image + (window.top * s.w + window.left) * s.c;
    const int64_t rows = window.bottom - window.top;
    const int64_t columns = window.right - window.left;
    uint8_t* const to = y + pixel;
    int64_t c = 0;
    const auto vectors = [&](auto ints) QUANTRAIN_INLINE {
      using B = decltype(ints);
      for (; c + B::kBytes <= s.c; c += B::kBytes) {
        typename B::Int largest = B::zero();
        for (int64_t h = 0; h < rows; ++h) {
          for (int64_t w = 0; w < columns; ++w) {
            largest = B::max_u8(largest, B::load(from + (h * s.w + w) * s.c + c));
          }
        }
        B::store(to + c, largest);
      }
    };
    vectors(I());
    if constexpr (I::kBytes > 16) vectors(typename I::Narrow());
    for (; c < s.c; ++c) {
      uint8_t largest = 0;
      for (int64_t h = 0; h < rows; ++h) {
        for (int64_t w = 0; w < columns; ++w) {
          const uint8_t value = from[(h * s.w + w) * s.c + c];
          if (value > largest) largest = value;
        }
      }
      to[c] = largest;
    }
  };
  for_windows<Arch>(s, begin, end, pool);
}

template <class Arch>
void sum_pool2d_u8_s32(const PoolShape& s,
                       int64_t begin,
                       int64_t end,
                       const uint8_t* x,
                       int32_t zero_x,
                       int32_t* sums) {
  using I = Ints<Arch>;
  const auto pool = [&](int64_t pixel, const auto& window, int64_t image) QUANTRAIN_INLINE {
    const uint8_t* const from = x + image + (window.top * s.w + window.left) * s.c;
    const int64_t rows = window.bottom - window.top;
    const int64_t columns = window.right - window.left;
    int32_t* const to = sums + pixel;
    const int32_t start = -zero_x * static_cast<int32_t>(window.pixels());
    int64_t c = 0;
    for (; c + I::kLanes <= s.c; c += I::kLanes) {
      typename I::Int sum = I::set1(start);
      for (int64_t h = 0; h < rows; ++h) {
        for (int64_t w = 0; w < columns; ++w) {
          sum = I::add(sum, I::load_u8(from + (h * s.w + w) * s.c + c));
        }
      }
      I::store(to + c, sum);
    }
    for (; c < s.c; ++c) {
      int32_t sum = start;
      for (int64_t h = 0; h < rows; ++h) {
        for (int64_t w = 0; w < columns; ++w) sum += from[(h * s.w + w) * s.c + c];
      }
      to[c] = sum;
    }
  };
  for_windows<Arch>(s, begin, end, pool);
}

}  // namespace quantrain::kernels::simd
