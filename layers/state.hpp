#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// Parameters and buffers, by name: all that training changes in a module, and the phase of a
/// prepared one. Training or evaluation mode is no part of it: the program sets it after load().
std::vector<NamedTensor> state(const Module& module);
/// Writes the values of one module's state into another of the same names and shapes.
/// Throws: GraphError naming the first tensor that has no counterpart, or the constant that has
/// another value; ShapeError if shapes differ.
/// Then nothing is written.
void copy_state(const Module& from, Module& to);

/// Writes a module's parameters and buffers to a safetensors file, whole or not at all, with
/// metadata of the caller's: any keys but "format", "version" and "layout".
/// Throws: DataError naming the path if it cannot be written, or for these keys.
void save(const Module& module,
          const std::string& path,
          const std::map<std::string, std::string>& metadata = {});
/// Reads what save() wrote into a module of the same structure. Returns the caller's metadata.
/// Throws: DataError if the file is of a network prepared for quantization and the module is not, or
/// the reverse; as load_parameters: a damaged file, another layout, a missing, unknown or
/// misshapen tensor, a constant of another value. Then nothing has changed.
std::map<std::string, std::string> load(Module& module, const std::string& path);

}  // namespace quantrain
