#pragma once

#include "layers/onnx/model.hpp"
#include "quant/import/onnx/import_quantized_onnx.hpp"

namespace quantrain::quant {

/// import_quantized_onnx() of a file that was read already.
QuantizedOnnx import_quantized_model(onnx::Model model, const QuantizedOnnxOptions& options = {});

}  // namespace quantrain::quant
