#pragma once

#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/export_onnx.hpp"

// The inputs and outputs of the file.   docs/quantization.md (3), (12), (20)
namespace quantrain::onnx_export {

void add_inputs(Export& out, const OnnxExportOptions& options);
void add_outputs(Export& out, const OnnxExportOptions& options);

/// A constant uint8 clamp after codes; nothing for [0, 255].
std::string clamped(onnx::GraphBuilder& graph, const std::string& codes, int32_t lo, int32_t hi);

}  // namespace quantrain::onnx_export
