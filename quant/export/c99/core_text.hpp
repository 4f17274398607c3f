#pragma once

#include <string_view>

namespace quantrain::c99 {

/// The files of core/, one after the other; made by CMake.
extern const std::string_view kCoreText;

}  // namespace quantrain::c99
