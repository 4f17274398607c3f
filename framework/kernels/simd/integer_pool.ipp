#pragma once

#include "framework/kernels/simd/integer.ipp"

// Pooling of codes, channels along the lanes.
namespace quantrain::kernels::simd {

/// Calls each(first element of the window, rows, columns, output pixel) for every pixel of the
/// images [begin, end), with the part of the window that is inside the image.
template <class Arch, class T, class Each>
QUANTRAIN_INLINE void for_pool_windows(
    const PoolShape& s, int64_t begin, int64_t end, const uint8_t* x, T* y, const Each& each) {
  for (int64_t row = begin * s.oh; row < end * s.oh; ++row) {
    const int64_t top = row % s.oh * s.stride_h - s.pad_h;
    const int64_t h0 = top < 0 ? 0 : top;
    const int64_t h1 = top + s.kh < s.h ? top + s.kh : s.h;
    for (int64_t column = 0; column < s.ow; ++column) {
      const int64_t left = column * s.stride_w - s.pad_w;
      const int64_t w0 = left < 0 ? 0 : left;
      const int64_t w1 = left + s.kw < s.w ? left + s.kw : s.w;
      each(x + ((row / s.oh * s.h + h0) * s.w + w0) * s.c,
           h1 - h0,
           w1 - w0,
           y + (row * s.ow + column) * s.c);
    }
  }
}

/// Sixteen channels of max pooling with positions. A code and its position are one number, Key: the
/// larger one has the larger code or, among equals, comes first. Vectors are the compiler's own.
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
QUANTRAIN_INLINE void max_with_position(const PoolShape& s,
                                        int64_t begin,
                                        int64_t end,
                                        const uint8_t* x,
                                        uint8_t* y,
                                        uint16_t* position) {
  for (int64_t row = begin * s.oh; row < end * s.oh; ++row) {
    const int64_t top = row % s.oh * s.stride_h - s.pad_h;
    const int64_t h0 = top < 0 ? 0 : top;
    const int64_t h1 = top + s.kh < s.h ? top + s.kh : s.h;
    const uint8_t* const image = x + row / s.oh * s.h * s.w * s.c;
    for (int64_t column = 0; column < s.ow; ++column) {
      const int64_t left = column * s.stride_w - s.pad_w;
      const int64_t w0 = left < 0 ? 0 : left;
      const int64_t w1 = left + s.kw < s.w ? left + s.kw : s.w;
      const int64_t pixel = (row * s.ow + column) * s.c;
      for (int64_t c = 0; c < s.c; c += 16) {
        const int64_t count = s.c - c;
        PoolKeys<Key> keys;
        for (int64_t h = h0; h < h1; ++h) {
          for (int64_t w = w0; w < w1; ++w) {
            const uint8_t* const from = image + (h * s.w + w) * s.c + c;
            uint8_t last[16] = {};
            if (count < 16) copy_few(count, from, last);
            keys.take(count < 16 ? last : from, (h - top) * s.kw + w - left);
          }
        }
        uint8_t codes[16];
        uint16_t positions[16];
        keys.give(count < 16 ? codes : y + pixel + c,
                  count < 16 ? positions : position + pixel + c);
        if (count >= 16) continue;
        copy_few(count, codes, y + pixel + c);
        copy_few(count, positions, position + pixel + c);
      }
    }
  }
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
  const auto window = [&](const uint8_t* from, int64_t rows, int64_t columns, uint8_t* to)
      __attribute__((always_inline)) {
    int64_t c = 0;
    const auto vectors = [&](auto ints) QUANTRAIN_INLINED {
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
  for_pool_windows<Arch>(s, begin, end, x, y, window);
}

template <class Arch>
void sum_pool2d_u8_s32(const PoolShape& s,
                       int64_t begin,
                       int64_t end,
                       const uint8_t* x,
                       int32_t zero_x,
                       int32_t* sums) {
  using I = Ints<Arch>;
  const auto window = [&](const uint8_t* from, int64_t rows, int64_t columns, int32_t* to)
      __attribute__((always_inline)) {
    const int64_t count = rows > 0 && columns > 0 ? rows * columns : 0;
    const int32_t start = -zero_x * static_cast<int32_t>(count);
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
  for_pool_windows<Arch>(s, begin, end, x, sums, window);
}

}  // namespace quantrain::kernels::simd
