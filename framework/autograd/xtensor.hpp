#pragma once

#include <vector>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/array.hpp"
#include "framework/core/error.hpp"

namespace quantrain {

/// The tensor's floats as an xtensor container that shares them. Writes through the container do
/// not change the tensor's version, so write only before the tensor takes part in a graph. Some
/// tensors, such as a batch's input, still have the codes that their floats were computed from
/// (Tensor::source_codes()). For these, the call itself drops the codes and increments the version
/// once. To read and keep the codes, call as_const_array().
/// Throws: GraphError unless the tensor holds floats.
inline Array as_array(const Tensor& tensor) {
  std::shared_ptr<Buffer<float>> buffer = TensorAccess::buffer(tensor);
  float* const data = buffer->data();
  return make_array(std::shared_ptr<float>(std::move(buffer), data), tensor.shape());
}

/// The tensor's floats, for reading. A tensor that holds floats shares them; else the floats are
/// computed from its codes or waiting result. Version and source codes stay as they are.
/// Throws: GraphError if the tensor is undefined.
inline ConstArray as_const_array(const Tensor& tensor) {
  std::shared_ptr<const Buffer<float>> buffer = tensor.floats().owner();
  const float* const data = buffer->data();
  return make_const_array(std::shared_ptr<const float>(std::move(buffer), data), tensor.shape());
}

/// A tensor with the values of an xtensor expression, computed directly into its memory. Example:
/// examples/xtensor.cpp.
template <class E>
Tensor as_tensor(const xt::xexpression<E>& expression) {
  const auto& extents = expression.derived_cast().shape();
  std::vector<int64_t> shape(extents.begin(), extents.end());
  Tensor tensor = Tensor::empty(Shape(shape));
  Array array = as_array(tensor);
  xt::noalias(array) = expression.derived_cast();
  return tensor;
}

}  // namespace quantrain
