#pragma once

#include <string>

#include "framework/io/safetensors.hpp"

namespace quantrain {

/// Layout of the arrays in quantrain's files: images [N, H, W, C], convolutions [O, KH, KW, I],
/// linear layers [out, in].
inline constexpr const char* kWeightLayout = "NHWC/OHWI";

/// Adds the metadata that every quantrain file has: the given format and version, and
/// kWeightLayout. The format is "quantrain" or another name, such as "quantrain-integer".
void set_format(TensorFile& file, const std::string& format, const std::string& version);
/// Checks the metadata that set_format() adds. Weights in another layout are refused, never
/// transposed silently.
/// Throws: DataError naming the path and the expected value if an entry differs or is missing.
void check_format(const std::string& path,
                  const TensorFile& file,
                  const std::string& format,
                  const std::string& version);

}  // namespace quantrain
