#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"
#include "framework/core/buffer.hpp"
#include "quant/prepare/fake_quantize_op.hpp"

// The forward passes of fake_quantize: what becomes of the values. fake_quantize_op.cpp checks the
// arguments and has the gradients.
namespace quantrain::quant::detail {

inline constexpr int64_t kGrain = 1
                                  << 14;  // a multiple of 8: no two blocks share a byte of the mask

/// The running layer, for messages.
std::string where();

/// The layout of x: [outer, count, inner], with one scale and zero point for each index in `count`.
struct Channels {
  int64_t count = 1;
  int64_t inner = 1;

  Channels(int64_t number, int64_t length) : count(number), inner(length) {}
  Channels(const Shape& shape, const QParams& params) {
    if (!params.per_channel()) {
      inner = std::max<int64_t>(shape.elements(), 1);
      return;
    }
    count = shape[params.axis];
    for (int axis = params.axis + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
  }
  size_t of(int64_t i) const { return static_cast<size_t>(i / inner % count); }
};

struct Quantized {
  Tensor y;
  Buffer<uint8_t> mask;  // empty if no gradient is stopped here
};

/// Quantizes x * factors, or x if `factors` is undefined.
Quantized quantize_floats(const Tensor& x,
                          const Tensor& factors,
                          const QParams& params,
                          CodeStorage storage,
                          bool want_mask);

/// Quantizes x * factors, or x if `factors` is undefined, with the parameters that `choose` finds
/// for each index of the first axis.
Quantized quantize_chosen(const Tensor& x,
                          const Tensor& factors,
                          const QType& type,
                          const ChooseParams& choose,
                          CodeStorage storage);

/// Requantizes a waiting result, or converts activation codes to other parameters: x's own codes if
/// the parameters are equal.
Quantized requantize_waiting(const Tensor& x, const QParams& params, bool want_mask);
Quantized rescale_codes(const Tensor& x, const QParams& params, bool want_mask);

/// Quantizes to more than 8 bits. Such codes are not stored: the result holds floats.
Quantized quantize_wide(const Tensor& x, const QParams& params, bool want_mask);

}  // namespace quantrain::quant::detail
