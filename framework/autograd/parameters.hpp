#pragma once

#include <map>
#include <span>
#include <string>

#include "framework/autograd/named_tensor.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain {

/// Named parameters (and buffers) as float32, with metadata of the caller's: any keys but "format",
/// "version" and "layout".
/// Throws: DataError as save_safetensors, if two tensors have the same name, or for these keys.
void save_parameters(const std::string& path,
                     std::span<const NamedTensor> tensors,
                     const std::map<std::string, std::string>& metadata = {});
/// Writes the file's values into the tensors. All of them fit, or nothing is changed. Throws:
/// DataError if the file cannot be loaded, is in another layout, lacks a name, has one that is not
/// among the tensors, or has one with another type or shape, or a constant with another value.
void load_parameters(const std::string& path, std::span<const NamedTensor> tensors);
/// The same from a file that was read already.
void load_parameters(const std::string& path,
                     const TensorFile& file,
                     std::span<const NamedTensor> tensors);

}  // namespace quantrain
