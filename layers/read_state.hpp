#pragma once

#include <string>
#include <string_view>

#include "framework/io/safetensors.hpp"

namespace quantrain {

/// load_safetensors(), which also says what to do with a file of torch.save().
/// Throws: DataError.
TensorFile read_state(std::string_view where, const std::string& path);

}  // namespace quantrain
