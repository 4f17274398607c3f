#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// Parameters and buffers by name: everything that training changes in a module, and the phase of a
/// prepared network. The mode (training or evaluation) is not included: set it after load().
std::vector<NamedTensor> state(const Module& module);
/// Copies one module's state into a module whose state has the same names and shapes.
/// Throws: GraphError naming the first tensor that has no counterpart, or the constant that has
/// another value; ShapeError if shapes differ. On an error, nothing is written.
void copy_state(const Module& from, Module& to);

/// Writes a module's parameters and buffers to a safetensors file, whole or not at all, with
/// the caller's metadata: any keys except "format", "version" and "layout".
/// Throws: DataError naming the path if it cannot be written, or for these keys.
void save(const Module& module,
          const std::string& path,
          const std::map<std::string, std::string>& metadata = {});
/// Reads a file that save() wrote into a module of the same structure. Returns the caller's
/// metadata.
/// Throws: DataError if the file holds a network prepared for quantization and the module is not
/// prepared, or the reverse; as load_parameters for a damaged file, another layout, a missing,
/// unknown or misshapen tensor, or a constant with another value. On an error, nothing changes.
std::map<std::string, std::string> load(Module& module, const std::string& path);

}  // namespace quantrain
