#include "framework/autograd/ops/masked.hpp"

#include "framework/autograd/tensor_access.hpp"
#include "framework/kernels/float/ranges.hpp"

namespace quantrain {

Tensor masked(const Tensor& grad_y, const Buffer<uint8_t>& mask) {
  if (mask.size() == 0) return grad_y;
  Tensor grad_x = TensorAccess::overwritable(grad_y);
  const Floats values = grad_y.floats();
  kernels::mask_f32(grad_y.elements(), values, mask.data(), grad_x.mutable_data());
  return grad_x;
}

}  // namespace quantrain
