#pragma once

#include <algorithm>
#include <string_view>

#include "framework/arithmetic/activation.hpp"
#include "framework/autograd/tensor.hpp"
#include "framework/core/parallel.hpp"

// Codes of activations in their stored form, one unsigned byte each: what operations on integers
// share.   docs/quantization.md (13)
namespace quantrain {

/// The codes of x where it holds those of an activation, stored as kU8 at one scale; else null.
std::shared_ptr<const Codes> activation_codes(const Tensor& x);

/// Parameters of an output in stored form: what requantization adds and clamps to, and the codes
/// between which the gradient passes.   docs/quantization.md (4), (8), (9), (13)
struct StoredOutput {
  float scale = 1.0f;
  int32_t zero_point = 0;
  int32_t lo = 0;
  int32_t hi = 255;
  int32_t mask_lo = 0;
  int32_t mask_hi = 255;

  /// Throws: QuantError if y has a scale per channel or more than 8 bits.
  StoredOutput(const QParams& y, Activation activation);
};

/// Bit i % 8 of mask[i / 8] = pass(i), for i in [0, n).
template <class Pass>
void write_mask(int64_t n, uint8_t* mask, const Pass& pass) {
  constexpr int64_t kGrain = 1 << 12;  // bytes: no two blocks share one
  parallel_for((n + 7) / 8, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t byte = begin; byte < end; ++byte) {
      unsigned bits = 0;
      const int64_t last = std::min(n, byte * 8 + 8);
      for (int64_t i = byte * 8; i < last; ++i) bits |= unsigned{pass(i)} << (i - byte * 8);
      mask[byte] = static_cast<uint8_t>(bits);
    }
  });
}

/// Bit i says whether code(i), an unclamped stored code, is one that the gradient passes.
/// docs/quantization.md (4)
template <class Code>
void write_range_mask(int64_t n, const StoredOutput& y, uint8_t* mask, const Code& code) {
  write_mask(n, mask, [&](int64_t i) {
    const int64_t unclamped = code(i);
    return unclamped >= y.mask_lo && unclamped <= y.mask_hi;
  });
}

}  // namespace quantrain
