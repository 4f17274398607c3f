#include "framework/core/system/windows/wide.hpp"

#include <windows.h>

#include <string_view>

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

std::wstring full_path(const std::wstring& path) {
  std::wstring full(::GetFullPathNameW(path.c_str(), 0, nullptr, nullptr), L'\0');
  full.resize(
      ::GetFullPathNameW(path.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr));
  return full;
}

std::wstring verbatim(const std::wstring& path) {
  const std::wstring full = full_path(path);
  if (full.starts_with(LR"(\\?\)") || full.starts_with(LR"(\\.\)") || full.empty()) return full;
  return full.starts_with(LR"(\\)") ? LR"(\\?\UNC)" + full.substr(1) : LR"(\\?\)" + full;
}

std::wstring without_prefix(const std::wstring& path) {
  const std::wstring_view share = LR"(\\?\UNC\)";
  const std::wstring_view local = LR"(\\?\)";
  if (path.starts_with(share)) return LR"(\\)" + path.substr(share.size());
  return path.starts_with(local) ? path.substr(local.size()) : path;
}

std::wstring wide_path(const std::string& path) {
  constexpr size_t kMostUsual = 240;  // a folder's path has at most 248 characters
  const std::wstring wide = to_wide(path);
  return wide.size() > kMostUsual || full_path(wide).size() > kMostUsual ? verbatim(wide) : wide;
}

std::string final_path(const File& file) {
  auto* const handle = reinterpret_cast<HANDLE>(file.get());
  std::wstring path(::GetFinalPathNameByHandleW(handle, nullptr, 0, 0), L'\0');
  const auto size = static_cast<DWORD>(path.size());
  if (::GetFinalPathNameByHandleW(handle, path.data(), size, 0) == 0) return "";
  return to_utf8(without_prefix(path.c_str()).c_str());
}

}  // namespace quantrain::system
