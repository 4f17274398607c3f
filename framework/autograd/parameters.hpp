#pragma once

#include <map>
#include <span>
#include <string>

#include "framework/autograd/named_tensor.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain {

/// Saves named parameters (and buffers) as float32, with the caller's metadata. The metadata may
/// have any keys except "format", "version" and "layout".
/// Throws: DataError if two tensors have the same name, if the metadata has one of these keys, or
/// if TensorFile::add() or save_safetensors() throws it.
void save_parameters(const std::string& path,
                     std::span<const NamedTensor> tensors,
                     const std::map<std::string, std::string>& metadata = {});
/// Writes the file's values into the tensors. If it throws, no tensor has changed.
/// Throws: DataError if the file cannot be loaded, or has another format, version or layout; if it
/// lacks a tensor's name, or has a name that no tensor has; if a tensor does not hold floats; if an
/// entry does not hold float32, or its shape differs from its tensor's; or if a tensor is marked
/// NamedTensor::constant, and its values differ from the file's.
void load_parameters(const std::string& path, std::span<const NamedTensor> tensors);
/// The same, for a file that has already been read.
void load_parameters(const std::string& path,
                     const TensorFile& file,
                     std::span<const NamedTensor> tensors);

}  // namespace quantrain
