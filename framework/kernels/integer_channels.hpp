#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "framework/core/buffer.hpp"
#include "framework/kernels/integer.hpp"

// Parameters of output channels as kernels read them: whole vectors, filled up.
namespace quantrain::kernels {

inline constexpr int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

inline bool high_shifts(const int32_t* shift, int64_t n) {
  return std::all_of(shift, shift + n, [](int32_t s) { return s >= 32; });
}

/// First values of the accumulators (bias - zero_x * sum of the weights) and, where they are
/// wanted, the multipliers of rule 8. Each of `groups` groups of outputs is filled up to a multiple
/// of `width`.
class ChannelParams {
 public:
  ChannelParams(const PackedWeightsS8& w,
                int64_t groups,
                int64_t width,
                int32_t zero_x,
                const int32_t* bias,
                const RequantizeU8* requantize)
      : group_(round_up(w.outputs() / groups, width)), values_(3 * groups * group_) {
    const int64_t outputs = w.outputs() / groups;
    const int64_t size = groups * group_;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t from = group * outputs;
      int32_t* const start = values_.data() + group * group_;
      for (int64_t o = 0; o < outputs; ++o) {
        // Fits by the bound of docs/quantization.md (7).
        const int64_t first = bias != nullptr ? bias[from + o] : 0;
        start[o] = static_cast<int32_t>(first - int64_t{zero_x} * w.sums()[from + o]);
      }
      std::fill(start + outputs, start + group_, 0);
      if (requantize == nullptr) continue;
      int32_t* const m0 = start + size;
      int32_t* const shift = m0 + size;
      std::copy_n(requantize->m0 + from, outputs, m0);
      std::copy_n(requantize->shift + from, outputs, shift);
      std::fill(m0 + outputs, m0 + group_, 0);
      std::fill(shift + outputs, shift + group_, 62);
    }
    if (requantize == nullptr) return;
    requantize_ = *requantize;
    requantize_.m0 = values_.data() + size;
    requantize_.shift = values_.data() + 2 * size;
    requantize_.high_shifts = high_shifts(requantize_.shift, size);
  }

  const int32_t* start(int64_t group) const { return values_.data() + group * group_; }
  RequantizeU8 requantize(int64_t group) const {
    RequantizeU8 r = requantize_;
    if (r.m0 == nullptr) return r;
    r.m0 += group * group_;
    r.shift += group * group_;
    return r;
  }

 private:
  int64_t group_;
  Buffer<int32_t> values_;
  RequantizeU8 requantize_;
};

/// After how many elements the entries of `channels` channels repeat, in whole groups of 16.
inline int64_t period_of(int64_t channels) {
  return channels * 16 / std::gcd(channels, int64_t{16});
}

/// Multipliers repeated to a period of whole groups of 16, for runs of n elements over `channels`.
class PeriodicRequantize {
 public:
  PeriodicRequantize(int64_t n, int64_t channels, const RequantizeU8& r)
      : period_(period_of(channels)),
        size_(std::min(period_, round_up(n, 16))),
        values_(2 * size_),
        requantize_(r) {
    for (int64_t i = 0; i < size_; ++i) {
      values_[i] = r.m0[i % channels];
      values_[size_ + i] = r.shift[i % channels];
    }
    requantize_.m0 = values_.data();
    requantize_.shift = values_.data() + size_;
    requantize_.high_shifts = high_shifts(r.shift, std::min(n, channels));
  }

  int64_t period() const { return period_; }
  const RequantizeU8& requantize() const { return requantize_; }

 private:
  int64_t period_;
  int64_t size_;
  Buffer<int32_t> values_;
  RequantizeU8 requantize_;
};

}  // namespace quantrain::kernels
