#pragma once

#include <map>
#include <span>
#include <string>

#include "framework/autograd/named_tensor.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain {

/// How weights lie in quantrain's files: images [N, H, W, C], convolutions [O, KH, KW, I], linear
/// layers [out, in].
inline constexpr const char* kWeightLayout = "NHWC/OHWI";

/// Sets what every file of quantrain says about itself: its format ("quantrain", or a name of the
/// caller's), version and the weights' layout.
void set_format(TensorFile& file, const std::string& format, const std::string& version);
/// Throws: DataError naming path, expected and found, if the file says something else or nothing:
/// weights in another layout are refused, never transposed silently.
void check_format(const std::string& path,
                  const TensorFile& file,
                  const std::string& format,
                  const std::string& version);

/// Named parameters (and buffers) as float32, with metadata of the caller's: any keys but "format",
/// "version" and "layout".
/// Throws: DataError as save_safetensors, if two tensors have the same name, or for these keys.
void save_parameters(const std::string& path,
                     std::span<const NamedTensor> tensors,
                     const std::map<std::string, std::string>& metadata = {});
/// Writes the file's values into the tensors. All of them fit, or nothing is changed. Throws:
/// DataError if the file cannot be loaded, is in another layout, lacks a name, has one that is not
/// among the tensors, or has one with another type or shape.
void load_parameters(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace quantrain
