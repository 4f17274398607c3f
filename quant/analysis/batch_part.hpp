#pragma once

#include <cstdint>

#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// Samples [first, first + n) of a batch [N, ...], with their codes if the batch has codes.
Tensor batch_part(const Tensor& batch, int64_t first, int64_t n);

}  // namespace quantrain::quant
