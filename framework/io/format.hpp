#pragma once

#include <string>

#include "framework/io/safetensors.hpp"

namespace quantrain {

/// Layout of the arrays in quantrain's files: images [N, H, W, C], convolutions [O, KH, KW, I],
/// linear layers [out, in].
inline constexpr const char* kWeightLayout = "NHWC/OHWI";

/// Writes the metadata that each quantrain file carries: its format ("quantrain", or a name chosen
/// by the caller), its version and the layout of its weights.
void set_format(TensorFile& file, const std::string& format, const std::string& version);
/// Checks these metadata. Weights in another layout are refused, never transposed silently.
/// Throws: DataError naming the path and the expected and found values, if one differs or is
/// missing.
void check_format(const std::string& path,
                  const TensorFile& file,
                  const std::string& format,
                  const std::string& version);

}  // namespace quantrain
