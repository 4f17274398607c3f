#pragma once

#include "quant/export/onnx/exact.hpp"

// Operations as QuantizeLinear and DequantizeLinear around operators of floats.
namespace quantrain::onnx_export {

/// Adds the operators of a step, or nothing: false says that only the exact form is near enough to
/// the engine's integers, or that it is as fast.
bool add_qdq(Export& out, const integer::Step& step);

}  // namespace quantrain::onnx_export
