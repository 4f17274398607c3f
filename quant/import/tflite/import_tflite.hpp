#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/integer/integer_model.hpp"

namespace quantrain {

/// The integer network of a fully quantized .tflite file (int8 activations, or uint8; weights of 8
/// or 4 bits). It runs, is saved and exported like a converted network.
///   const IntegerModel model = import_tflite("person_detect.tflite");
///   write_c99(".", export_c99(model.program(), {.name = "person"}));
/// Shapes: inputs and outputs have those of the file, without the batch of 1; images are [H, W, C].
/// Codes: a code of the file is a code of the program, with the same scale and zero point. int8
/// codes are stored as bytes q + 128 (run_codes() takes these bytes). Inputs and outputs that the
/// file gives as floats, behind QUANTIZE or before DEQUANTIZE, are codes here: run() takes and
/// gives floats. Arithmetic: that of docs/quantization.md, see its section on TFLite. TFLite's own
/// runtimes differ from each other. In convolutions and linear layers the codes are those of its
/// built-in kernels; everywhere they are within 1 of XNNPACK's, its default. Operations: CONV_2D,
/// DEPTHWISE_CONV_2D, FULLY_CONNECTED, AVERAGE_POOL_2D, MAX_POOL_2D, MEAN, ADD, MUL, CONCATENATION,
/// PAD, PADV2, RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, STRIDED_SLICE, RESIZE_NEAREST_NEIGHBOR,
/// SOFTMAX, LOGISTIC, TANH, HARD_SWISH, LEAKY_RELU, RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1,
/// QUANTIZE and DEQUANTIZE. memory_limit: as for IntegerModel::load().
/// Throws: DataError naming the file if it cannot be read, is no .tflite file or is damaged, or if
/// the network needs more memory than the limit; GraphError naming every kind of operation that has
/// no integer form, with its number; what integer::validate() throws.
IntegerModel import_tflite(const std::string& path, std::optional<int64_t> memory_limit = {});
/// The same from the bytes of a file. `where` names the file in messages.
IntegerModel import_tflite(std::span<const uint8_t> file,
                           std::string_view where,
                           std::optional<int64_t> memory_limit = {});

}  // namespace quantrain
