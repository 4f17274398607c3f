#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// Reads an .onnx file, and tensors that lie in other files of its folder (external data). The file
/// is untrusted: every length, type and number is checked before it is used, and memory is bounded
/// by a small multiple of the files' size. check_model() checks the wiring.
/// Throws: DataError naming the path, the part of the file and the fault.
/// Source: github.com/onnx/onnx, onnx/onnx.proto.
Model read_model(const std::string& path);
/// The same for the bytes of a file in memory, without external data. `path` is for messages.
Model parse_model(std::span<const uint8_t> bytes, const std::string& path);
/// A single tensor, as in the files test_data_set_*/*.pb of ONNX's tests.
/// Throws: like read_model.
StoredTensor parse_tensor(std::span<const uint8_t> bytes, const std::string& path);

}  // namespace quantrain::onnx
