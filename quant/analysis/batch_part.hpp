#pragma once

#include <cstdint>
#include <span>

#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// Samples [first, first + n) of a batch [N, ...], with their codes if the batch has codes.
Tensor batch_part(const Tensor& batch, int64_t first, int64_t n);
/// The samples with these indices, in this order, with their codes if the batch has codes.
Tensor batch_samples(const Tensor& batch, std::span<const int64_t> indices);

/// Number of channels: the extent of the last axis.
inline int64_t last_extent(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

}  // namespace quantrain::quant
