#pragma once

#include <map>
#include <span>
#include <string>

#include "framework/autograd/named_tensor.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain {

/// Saves named parameters (and buffers) as float32, with the caller's metadata. The metadata may
/// have any keys except "format", "version" and "layout".
/// Throws: DataError as save_safetensors does, if two tensors have the same name, or if the
/// metadata has one of these keys.
void save_parameters(const std::string& path,
                     std::span<const NamedTensor> tensors,
                     const std::map<std::string, std::string>& metadata = {});
/// Writes the file's values into the tensors. If one of them does not fit, no tensor is changed.
/// Throws: DataError if the file cannot be loaded or is in another layout; if it lacks the name of
/// a tensor or has a name that no tensor has; if an entry has another type or shape than its
/// tensor; or if a constant has another value.
void load_parameters(const std::string& path, std::span<const NamedTensor> tensors);
/// The same for a file that is already read.
void load_parameters(const std::string& path,
                     const TensorFile& file,
                     std::span<const NamedTensor> tensors);

}  // namespace quantrain
