#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/integer/program.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain::integer {

/// The content of the file that save_program() writes, and the program that such content holds.
/// `where` names the file in messages.
/// Throws: as save_program() and load_program(), except for what concerns the file itself.
TensorFile tensors_of(const Program& program, const std::string& where);
Program program_from(const TensorFile& file,
                     const std::string& where,
                     std::optional<int64_t> memory_limit = {},
                     KeepWeights keep = KeepWeights::kFast);

/// Writes a safetensors file, completely or not at all. Weights and biases are tensors named by
/// their position among the program's constants: "constants.0" (program_constants.hpp). Weights are
/// packed (constant.hpp). Other arrays are named by step and member: "0.output.m0",
/// "1.axes.0.index". The file's metadata hold the values, constants, steps, inputs and outputs as
/// JSON, and the program's own metadata.
/// Throws: DataError if the file cannot be written, a name is not UTF-8, or the program's metadata
/// have one of the keys that the file uses itself: "format", "version", "layout", "network"; what
/// load_program() throws for such a file, except for its memory limit.
void save_program(const std::string& path, const Program& program);
/// Default memory limit for a loaded model: 256 MiB plus 16 times the bytes of its tensors and
/// JSON.
int64_t memory_limit(int64_t file_bytes);
/// Reads a program. Refuses a program that needs more than `memory_limit` bytes to run (see
/// check_memory), because a small file can ask for terabytes. By default, the function
/// memory_limit() computes the limit from the size of the file's tensors and JSON. keep: how a
/// model of the program is to keep its weights.
/// Throws: DataError if the file cannot be read, is not an integer model, has another version or
/// layout, lacks an entry, has an unknown entry, or needs too much memory; QuantError, ShapeError
/// or GraphError like validate() of the program.
Program load_program(const std::string& path,
                     std::optional<int64_t> memory_limit = {},
                     KeepWeights keep = KeepWeights::kFast);
/// Like load_program(), but from the bytes of a file. `where` names the file in messages.
Program parse_program(std::span<const uint8_t> file,
                      std::string_view where,
                      std::optional<int64_t> memory_limit = {},
                      KeepWeights keep = KeepWeights::kFast);

}  // namespace quantrain::integer
