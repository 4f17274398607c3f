#pragma once

#include <vector>

#include "framework/integer/operation.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

// One operation of each kind.
namespace quantrain::integer::test {

/// Upsamples rows, adds a column at the left, and takes every second channel, in reverse order.
inline Gather gather() {
  return Gather::make({2, 3, 5}, {{0, 0, 1, 1}, {-1, 0, 1, 2}, {4, 2, 0}}, 9);
}

inline QuantizedLinear linear() {
  const RandomProduct p({.outputs = 2, .length = 3, .x = kX}, 9);
  return {.rows = 1, .inputs = 3, .outputs = 2, .product = p.behind(kY)};
}

inline QuantizedConv2d conv2d() {
  const RandomProduct p({.outputs = 4, .length = 9, .x = kX}, 9);
  return {{.h = 5, .w = 4, .c = 2, .o = 4, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 2},
          p.behind(kY)};
}

inline QuantizedAdd add() { return QuantizedAdd::make(10, {kX, kSigned}, kY, Activation::kNone); }

inline QuantizedMul mul() { return QuantizedMul::make(5, 2, kX, kSigned, kY, Activation::kNone); }

inline QuantizedAvgPool2d avg_pool() {
  return QuantizedAvgPool2d::make(pool_shape(5, 4, 3, 2, 2, 1), kX, kY, Activation::kNone);
}

inline QuantizedMaxPool2d max_pool() { return {pool_shape(5, 4, 3, 2, 2, 1)}; }

inline QuantizedConcat concat() {
  return QuantizedConcat::make(2, {3, 1, 4}, {kX, kSigned, kY}, kY, Activation::kNone);
}

inline QuantizedLookup lookup() { return QuantizedLookup::rescale(7, kX, kY, Activation::kRelu); }

inline QuantizedSoftmax softmax() {
  return QuantizedSoftmax::make(3, 5, kX, kY, Activation::kNone);
}

inline std::vector<Operation> samples() {
  return {gather(),
          add(),
          avg_pool(),
          concat(),
          conv2d(),
          linear(),
          lookup(),
          max_pool(),
          mul(),
          softmax(),
          View{11}};
}

}  // namespace quantrain::integer::test
