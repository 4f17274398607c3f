#pragma once

#include "quant/export/onnx/exact.hpp"

// The operations in integer operators. x, y: values.
namespace quantrain::onnx_export {

void exact_convolution(Export& out, const integer::QuantizedConv2d& op, int x, int y);
void exact_linear(Export& out, const integer::QuantizedLinear& op, int x, int y);
void exact_max_pool(Export& out, const integer::QuantizedMaxPool2d& op, int x, int y);
void exact_avg_pool(Export& out, const integer::QuantizedAvgPool2d& op, int x, int y);
void exact_add(Export& out, const integer::QuantizedAdd& op, const std::vector<int>& x, int y);
void exact_mul(Export& out, const integer::QuantizedMul& op, int a, int b, int y);
void exact_softmax(Export& out, const integer::QuantizedSoftmax& op, int x, int y);
void exact_lookup(Export& out, const integer::QuantizedLookup& op, int x, int y);
void exact_concat(Export& out,
                  const integer::QuantizedConcat& op,
                  const std::vector<int>& x,
                  int y);
void exact_gather(Export& out, const integer::Gather& op, int x, int y);

}  // namespace quantrain::onnx_export
