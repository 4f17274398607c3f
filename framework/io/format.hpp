#pragma once

#include <string>

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

}  // namespace quantrain
