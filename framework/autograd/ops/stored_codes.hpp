#pragma once

#include <algorithm>
#include <array>

#include "framework/autograd/tensor.hpp"
#include "framework/core/parallel.hpp"

// Shared by operations on integers: activation codes in their stored form, one unsigned byte
// each.   docs/quantization.md (13)
namespace quantrain {

/// The codes of x if they are an activation's, stored as kU8 with one scale; else null.
std::shared_ptr<const Codes> activation_codes(const Tensor& x);

/// How a tensor [N, ...] splits into samples. A tensor without axes is one sample.
struct Samples {
  int64_t count = 1;
  int64_t size = 1;  ///< elements of each sample

  explicit Samples(const Shape& shape);
};

/// A tensor of the codes that `operation` has computed.
Tensor computed_codes(const Shape& shape,
                      Buffer<uint8_t> bytes,
                      const QParams& params,
                      std::shared_ptr<const integer::Operation> operation);

/// Bit i % 8 of mask[i / 8] = pass(i), for i in [0, n).
template <class Pass>
void write_mask(int64_t n, uint8_t* mask, const Pass& pass) {
  constexpr int64_t kGrain = 1 << 12;  // bytes, so no two blocks share a byte
  parallel_for((n + 7) / 8, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t byte = begin; byte < end; ++byte) {
      unsigned bits = 0;
      const int64_t last = std::min(n, byte * 8 + 8);
      for (int64_t i = byte * 8; i < last; ++i) bits |= unsigned{pass(i)} << (i - byte * 8);
      mask[byte] = static_cast<uint8_t>(bits);
    }
  });
}

/// For each stored byte q: whether the gradient passes when q is rescaled to parameters y. It
/// passes if equation (8), applied to q - zero_x and without the clamp, gives a result in the range
/// of y's codes.   docs/quantization.md (4), (8)
using CodeFlags = std::array<bool, 256>;
CodeFlags rescale_passes(int32_t zero_x, Multiplier multiplier, const QParams& y);

}  // namespace quantrain
