#pragma once

#include <filesystem>
#include <string>

namespace quantrain {

/// The path that a text in UTF-8 names, as all functions of quantrain take it. On POSIX systems, a
/// path may have any bytes. On Windows, std::filesystem::path(text) would read the text in the
/// system's own encoding.
std::filesystem::path to_path(const std::string& text);
/// The inverse.
std::string to_text(const std::filesystem::path& path);

}  // namespace quantrain
