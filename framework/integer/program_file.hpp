#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// A safetensors file: the arrays of the operations as tensors "<step>.<member>", and in its
/// metadata the values, steps, inputs and outputs as JSON, beside the program's own metadata.
/// Weights are packed (packed_weights.hpp). Written whole or not at all.
/// Throws: DataError if it cannot be written, a name is not UTF-8, or metadata has one of the file's
/// keys: "format", "version", "layout", "network".
void save_program(const std::string& path, const Program& program);
/// What a model that is loaded may take of memory unless the caller says: 256 MiB, and 16 times the
/// bytes of its file.
int64_t memory_limit(int64_t file_bytes);
/// Reads a program that no more than memory_limit bytes are needed to run (check_memory), by
/// default those of memory_limit(): a small file can ask for terabytes.
/// Throws: DataError if the file cannot be read, is no integer model, is of another version or
/// layout, lacks something, has something that nothing asks for, or would take more memory;
/// QuantError, ShapeError or GraphError as validate() of what it says.
Program load_program(const std::string& path, std::optional<int64_t> memory_limit = {});
/// The same from the bytes of a file; `where` names them in messages.
Program parse_program(std::span<const uint8_t> file,
                      std::string_view where,
                      std::optional<int64_t> memory_limit = {});

}  // namespace quantrain::integer
