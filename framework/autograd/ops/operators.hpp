#pragma once

#include "framework/autograd/ops/add.hpp"
#include "framework/autograd/ops/div.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/autograd/ops/sub.hpp"

// The unary minus, and operators between a tensor and a number, which is recorded as a scalar
// tensor. Operators between tensors are declared with their operations.
namespace quantrain {

inline Tensor operator+(const Tensor& a, float b) { return add(a, Tensor::full({}, b)); }
inline Tensor operator+(float a, const Tensor& b) { return add(Tensor::full({}, a), b); }
inline Tensor operator-(const Tensor& a, float b) { return sub(a, Tensor::full({}, b)); }
inline Tensor operator-(float a, const Tensor& b) { return sub(Tensor::full({}, a), b); }
inline Tensor operator*(const Tensor& a, float b) { return mul(a, Tensor::full({}, b)); }
inline Tensor operator*(float a, const Tensor& b) { return mul(Tensor::full({}, a), b); }
inline Tensor operator/(const Tensor& a, float b) { return div(a, Tensor::full({}, b)); }
inline Tensor operator/(float a, const Tensor& b) { return div(Tensor::full({}, a), b); }
inline Tensor operator-(const Tensor& a) { return mul(a, Tensor::full({}, -1.0f)); }

}  // namespace quantrain
