#pragma once

#include <cstddef>
#include <string>

// What the writer and the reader of a program's file share.
namespace quantrain::integer {

inline constexpr const char* kFormat = "quantrain-integer";
inline constexpr const char* kVersion = "2";

/// The tensor of a constant.
inline std::string constant_name(size_t position) {
  return "constants." + std::to_string(position);
}

}  // namespace quantrain::integer
