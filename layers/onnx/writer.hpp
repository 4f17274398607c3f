#pragma once

#include <string>

#include "layers/onnx/model.hpp"

namespace quantrain::onnx {

/// The bytes of an .onnx file. Tensors are stored in the file. The same model gives the same bytes.
/// Throws: ExportError naming `where` if a text is not UTF-8, an attribute is neither a number, a
/// text, a tensor nor a list, or the file would exceed the 2 GiB that protobuf allows.
/// Source: github.com/onnx/onnx, onnx/onnx.proto.
std::string model_bytes(const Model& model, const std::string& where);
/// Writes the file completely or not at all (see write_file).
/// Throws: as model_bytes(); DataError if the file cannot be written.
void write_model(const std::string& path, const Model& model);

}  // namespace quantrain::onnx
