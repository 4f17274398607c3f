#pragma once

#include <string>
#include <vector>

#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/export_onnx.hpp"

namespace quantrain::onnx_export {

/// Keys of the file's metadata that belong to the exporter begin with this.
inline constexpr std::string_view kReserved = "quantrain.";
inline constexpr const char* kProgramKey = "quantrain.program";  ///< values and steps, as JSON
inline constexpr const char* kExportKey = "quantrain.export";    ///< options, numbers, weights
inline constexpr const char* kHashKey = "quantrain.hash";        ///< integer::content_hash

/// Adds the program's metadata and what load_exported_onnx() needs besides the graph.
/// Throws: ExportError if the program has metadata of a reserved name.
void add_metadata(onnx::Model& model, const Export& exported, const OnnxExportOptions& options);

std::string hash_text(const integer::Program& program);

}  // namespace quantrain::onnx_export
