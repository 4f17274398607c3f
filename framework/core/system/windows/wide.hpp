#pragma once

#include <string>

#include "framework/core/system/file.hpp"

namespace quantrain::system {

/// A text in UTF-8 as Windows takes it; empty if it is not UTF-8.
std::wstring to_wide(const std::string& text);
/// The inverse.
std::string to_utf8(const wchar_t* text);

std::wstring full_path(const std::wstring& path);
/// The full path in the form that the system takes as it is: of any length, and without a meaning
/// of "..", of devices such as NUL, or of dots and spaces at the end of a name.
std::wstring verbatim(const std::wstring& path);
/// The usual form of a verbatim path, in which "/" separates, too.
std::wstring without_prefix(const std::wstring& path);
/// A path as functions of Windows take it: long ones are verbatim.
std::wstring wide_path(const std::string& path);
/// The path of an open file, in which no part is a link; empty if the system does not say.
std::string final_path(const File& file);

}  // namespace quantrain::system
