#pragma once

#include <cstdint>

#include "framework/autograd/tensor.hpp"
#include "framework/core/buffer.hpp"

namespace quantrain {

/// A gradient that a mask stops in part: element i is that of grad_y if bit i of the mask is set,
/// else 0. An empty mask stops nothing. Overwrites grad_y if nobody else holds it.
Tensor masked(const Tensor& grad_y, const Buffer<uint8_t>& mask);

}  // namespace quantrain
