#include <algorithm>
#include <atomic>
#include <cstring>

#include "framework/core/parallel.hpp"
#include "framework/kernels/code_view.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/channels.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::kernels {
namespace {

// A multiple of 8, so that no two blocks share a byte of a mask.
constexpr int64_t kGrain = 1 << 15;
constexpr int64_t kQuantizeGrain = 1 << 14;  // smaller, because each element needs a division

void set(std::atomic<bool>& flag, bool value) {
  if (!value) flag.store(false, std::memory_order_relaxed);
}

/// Writes the n bits of `bits` to mask, beginning at bit `at`. mask must hold zeros there. The rest
/// of the last byte of `bits` must be 0.
void append_bits(int64_t n, const uint8_t* bits, int64_t at, uint8_t* mask) {
  const int offset = static_cast<int>(at % 8);
  uint8_t* to = mask + at / 8;
  for (int64_t i = 0; i < n; i += 8, ++bits, ++to) {
    to[0] |= static_cast<uint8_t>(*bits << offset);
    if (offset + std::min<int64_t>(n - i, 8) > 8)
      to[1] |= static_cast<uint8_t>(*bits >> (8 - offset));
  }
}

/// Sets bit i % 8 of bits[i / 8] to flags[i], which is 0 or 1. flags must be padded with zeros to a
/// multiple of 8 elements.
void pack_bits(int64_t n, const uint8_t* flags, uint8_t* bits) {
  for (int64_t i = 0; i < n; i += 8) {
    uint64_t eight = 0;
    for (int64_t j = 0; j < 8; ++j) eight |= uint64_t{flags[i + j]} << (8 * j);
    bits[i / 8] = static_cast<uint8_t>(eight * 0x0102040810204080 >> 56);  // flag j to bit 56 + j
  }
}

}  // namespace

void requantize_s32_u8(int64_t rows,
                       int64_t channels,
                       const int32_t* acc,
                       const RequantizeU8& requantize,
                       uint8_t* y,
                       const GradientMask& mask) {
  const int64_t n = rows * channels;
  if (n <= 0) return;
  const PeriodicRequantize periodic(n, channels, requantize);
  const IntegerTable& kernels = integer_table();
  parallel_for(n, round_up(kGrain, periodic.period()), [&](int64_t begin, int64_t end) {
    kernels.requantize_s32_u8(end - begin,
                              periodic.period(),
                              acc + begin,
                              periodic.requantize(),
                              y + begin,
                              mask.bits != nullptr ? mask.bits + begin / 8 : nullptr,
                              mask.lo,
                              mask.hi);
  });
}

void dequantize_s32_f32(
    int64_t rows, int64_t channels, const int32_t* acc, const double* scale, float* y) {
  const IntegerTable& kernels = integer_table();
  parallel_for(rows,
               std::max<int64_t>(1, kGrain / std::max<int64_t>(channels, 1)),
               [&](int64_t begin, int64_t end) {
                 kernels.dequantize_s32_f32(
                     end - begin, channels, acc + begin * channels, scale, y + begin * channels);
               });
}

void add_u8(int64_t n,
            const uint8_t* const* x,
            const AddParams& params,
            uint8_t* y,
            const GradientMask& mask) {
  const AddMultipliers& m = params.multipliers;
  const auto operands = static_cast<int64_t>(m.m.size());
  int64_t offset = int64_t{1} << (m.shift - 1);
  for (size_t k = 0; k < m.m.size(); ++k) offset -= int64_t{params.zero_x[k]} * m.m[k];
  const auto to = [&](int32_t zero_point, int32_t lo, int32_t hi) {
    return AddU8{operands, m.m.data(), m.shift, offset, zero_point, lo, hi};
  };
  const int32_t zero_y = params.y.zero_point;
  const AddU8 p = to(zero_y, params.y.lo, params.y.hi);
  // The same sums with other zero points, clamped to [0, 1]. `reaches` gives 1 if the code is at
  // least mask.lo, and `exceeds` gives 1 if the code is above mask.hi.
  const AddU8 reaches = to(zero_y - mask.lo + 1, 0, 1);
  const AddU8 exceeds = to(zero_y - mask.hi, 0, 1);
  const IntegerTable& kernels = integer_table();
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    if (mask.bits == nullptr) return kernels.add_u8(begin, end - begin, x, p, y + begin);
    constexpr int64_t kBlock = 2048;
    uint8_t low[kBlock];
    uint8_t high[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      kernels.add_u8(i, count, x, reaches, low);
      kernels.add_u8(i, count, x, exceeds, high);
      kernels.add_u8(i, count, x, p, y + i);
      for (int64_t j = 0; j < count; ++j) low[j] = static_cast<uint8_t>(low[j] & ~high[j]);
      std::fill(low + count, low + round_up(count, 8), uint8_t{0});
      pack_bits(count, low, mask.bits + i / 8);
    }
  });
}

void mul_u8(int64_t n,
            int64_t rows,
            int64_t channels,
            const uint8_t* a,
            const uint8_t* b,
            const MulParams& params,
            uint8_t* y,
            const GradientMask& mask) {
  constexpr int64_t kBlock = 2048;
  const auto to = [&](int32_t zero_point, int32_t lo, int32_t hi) {
    const Multiplier& m = params.multiplier;
    return MulU8{params.zero_a, params.zero_b, m.m0, m.shift, zero_point, lo, hi};
  };
  const int32_t zero_y = params.y.zero_point;
  const MulU8 p = to(zero_y, params.y.lo, params.y.hi);
  // The same products with other zero points, clamped to [0, 1]. `reaches` gives 1 if the code is
  // at least mask.lo, and `exceeds` gives 1 if the code is above mask.hi.
  const MulU8 reaches = to(zero_y - mask.lo + 1, 0, 1);
  const MulU8 exceeds = to(zero_y - mask.hi, 0, 1);
  const int64_t size = rows * channels;
  const IntegerTable& kernels = integer_table();
  parallel_for(n * size, kGrain, [&](int64_t begin, int64_t end) {
    uint8_t repeated[kBlock];
    uint8_t low[kBlock];
    uint8_t high[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t count = std::min(kBlock, end - i);
      const uint8_t* factors = b + i;
      if (rows != 1) {
        for (int64_t j = 0; j < count;) {
          const int64_t c = (i + j) % channels;
          const int64_t run = std::min(channels - c, count - j);
          std::copy_n(b + (i + j) / size * channels + c, run, repeated + j);
          j += run;
        }
        factors = repeated;
      }
      if (mask.bits != nullptr) {
        kernels.mul_u8(count, a + i, factors, reaches, low);
        kernels.mul_u8(count, a + i, factors, exceeds, high);
        for (int64_t j = 0; j < count; ++j) low[j] = static_cast<uint8_t>(low[j] & ~high[j]);
        std::fill(low + count, low + round_up(count, 8), uint8_t{0});
        pack_bits(count, low, mask.bits + i / 8);
      }
      kernels.mul_u8(count, a + i, factors, p, y + i);
    }
  });
}

void lookup_u8(int64_t n, const uint8_t* x, const uint8_t* table, uint8_t* y) {
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = table[x[i]];
  });
}

void lookup_channels_u8(
    int64_t rows, int64_t channels, const uint8_t* x, const uint8_t* tables, uint8_t* y) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(channels, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * channels; i < end * channels; i += channels) {
      for (int64_t c = 0; c < channels; ++c) y[i + c] = tables[c * 256 + x[i + c]];
    }
  });
}

void lookup_rows_u8(int64_t rows,
                    int64_t length,
                    const uint8_t* x,
                    const uint8_t* table,
                    uint8_t* y,
                    int64_t y_stride) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(length, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < length; ++i) y[row * y_stride + i] = table[x[row * length + i]];
    }
  });
}

bool quantize_f32_u8(
    int64_t n, const float* x, const QuantizeF32& q, uint8_t* codes, uint8_t* mask) {
  std::atomic<bool> finite = true;
  const IntegerTable& kernels = integer_table();
  parallel_for(n, kQuantizeGrain, [&](int64_t begin, int64_t end) {
    bool block_finite = true;
    kernels.quantize_f32_u8(end - begin,
                            x + begin,
                            q,
                            codes + begin,
                            mask != nullptr ? mask + begin / 8 : nullptr,
                            &block_finite);
    set(finite, block_finite);
  });
  return finite;
}

bool quantize_channels_f32_u8(int64_t n,
                              int64_t channels,
                              int64_t inner,
                              const float* x,
                              const QuantizeF32* q,
                              uint8_t* codes,
                              uint8_t* mask) {
  if (n <= 0) return true;
  std::atomic<bool> finite = true;
  const IntegerTable& kernels = integer_table();
  if (mask != nullptr && inner % 8 != 0) std::memset(mask, 0, static_cast<size_t>((n + 7) / 8));
  // A run is `inner` elements of one channel. A block has a multiple of 8 runs, so it begins at a
  // whole byte of the mask.
  parallel_for(n / inner,
               round_up(std::max<int64_t>(kQuantizeGrain / inner, 1), 8),
               [&](int64_t begin, int64_t end) {
                 Buffer<uint8_t> bits;
                 if (mask != nullptr && inner % 8 != 0) bits = Buffer<uint8_t>((inner + 7) / 8);
                 for (int64_t run = begin; run < end; ++run) {
                   const int64_t first = run * inner;
                   uint8_t* const run_mask = mask == nullptr  ? nullptr
                                             : inner % 8 == 0 ? mask + first / 8
                                                              : bits.data();
                   bool run_finite = true;
                   kernels.quantize_f32_u8(
                       inner, x + first, q[run % channels], codes + first, run_mask, &run_finite);
                   set(finite, run_finite);
                   if (mask != nullptr && inner % 8 != 0)
                     append_bits(inner, bits.data(), first, mask);
                 }
               });
  return finite;
}

void CodeView::to_float(int64_t channel, int64_t at, int64_t n, float* y) const {
  rows_to_float(channel, channel + 1, 0, at, n, y, 0);
}

void CodeView::rows_to_float(int64_t begin,
                             int64_t end,
                             int64_t stride,
                             int64_t at,
                             int64_t n,
                             float* y,
                             int64_t y_stride) const {
  const auto kernel = integer_table().dequantize_f32;
  for (int64_t channel = begin; channel < end; ++channel, y += y_stride) {
    const int64_t c = channel * step;
    kernel(n, bytes + channel * stride + at, is_signed, scale[c], zero_point[c] + offset, y);
  }
}

void dequantize_u8_f32(int64_t n, const uint8_t* codes, float scale, int32_t zero_point, float* y) {
  const CodeView all{.bytes = codes, .scale = &scale, .zero_point = &zero_point};
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    all.to_float(0, begin, end - begin, y + begin);
  });
}

}  // namespace quantrain::kernels
