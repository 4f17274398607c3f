#pragma once

#include <string>

namespace quantrain::system {

/// A text in UTF-8 as Windows takes it; empty if it is not UTF-8.
std::wstring to_wide(const std::string& text);
/// The inverse.
std::string to_utf8(const wchar_t* text);

}  // namespace quantrain::system
