#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// Parameters and buffers by name: everything that training changes in a module. In a network
/// prepared for quantization, this includes the phase (quant/prepare/phase.hpp). The mode,
/// training or evaluation, is not included: set it after load().
std::vector<NamedState> state(const Module& module);
/// Copies one module's state into a module whose state has the same names, types and shapes.
/// Throws: GraphError, naming the entry, if an entry has no counterpart or a constant has different
/// values in the two modules; ShapeError if types or shapes differ; DataError if an integer is
/// outside of the target's range. On an error, nothing is written.
void copy_state(const Module& from, Module& to);

/// Writes a module's parameters and buffers, and the caller's metadata, to a safetensors file. The
/// file is written completely or not at all. The metadata may have any keys except "format",
/// "version" and "layout".
/// Throws: DataError naming the path if the file cannot be written or the metadata has one of these
/// keys.
void save(const Module& module,
          const std::string& path,
          const std::map<std::string, std::string>& metadata = {});
/// Loads a file written by save() into a module of the same structure. Returns the metadata that
/// the caller of save() added.
/// Throws: DataError if the file is damaged, or has another format, version or layout (for a file
/// of PyTorch, the message says how to read it); if it comes from a network prepared for
/// quantization and the module is not prepared, or the reverse; if an entry is missing, unknown or
/// has another type or shape; if an integer is outside of its range; or if a constant has another
/// value. On an error, nothing changes.
std::map<std::string, std::string> load(Module& module, const std::string& path);

}  // namespace quantrain
