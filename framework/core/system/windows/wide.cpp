#include "framework/core/system/windows/wide.hpp"

#include <windows.h>

namespace quantrain::system {

std::wstring to_wide(const std::string& text) {
  const auto bytes = static_cast<int>(text.size());
  const auto convert = [&](wchar_t* out, int size) {
    return ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), bytes, out, size);
  };
  std::wstring wide(static_cast<size_t>(convert(nullptr, 0)), L'\0');
  convert(wide.data(), static_cast<int>(wide.size()));
  return wide;
}

std::string to_utf8(const wchar_t* text) {
  const auto convert = [&](char* out, int size) {
    return ::WideCharToMultiByte(CP_UTF8, 0, text, -1, out, size, nullptr, nullptr);
  };
  std::string utf8(static_cast<size_t>(convert(nullptr, 0)), '\0');
  convert(utf8.data(), static_cast<int>(utf8.size()));
  utf8.resize(utf8.empty() ? 0 : utf8.size() - 1);  // a zero byte, at the end of the text, counts
  return utf8;
}

}  // namespace quantrain::system
