#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/integer/integer_model.hpp"

namespace quantrain {

namespace onnx {
struct Model;
}

/// Whether the file says that export_onnx() made it from an integer program.
/// Throws: DataError if it is no ONNX file.
bool is_exported_onnx(const std::string& path);
/// The same for a file that onnx::read_model() has read.
bool is_exported_onnx(const onnx::Model& model);

/// The integer network of a file that export_onnx() wrote, of either form: the same integers and
/// the same hash. Parameters come from the file's metadata, weights from its initializers. The file
/// is untrusted: the program is validated, and exported again. Unless that gives the operator set,
/// metadata and graph of the file, operator by operator and bit by bit, the file is refused.
/// Throws: DataError naming the path if the file was not made by export_onnx() of this version, or
/// was changed since; what integer::load_program() throws.
IntegerModel load_exported_onnx(const std::string& path, std::optional<int64_t> memory_limit = {});
/// The same for a file that onnx::read_model() has read.
IntegerModel load_exported_onnx(const onnx::Model& model, std::optional<int64_t> memory_limit = {});

}  // namespace quantrain
