#include "framework/core/path.hpp"

#include <windows.h>

#include "framework/core/system/windows/wide.hpp"

namespace quantrain {
namespace {

using system::wide_path;

/// What the path leads to, also if it is a folder.
system::File opened(const std::string& path) {
  constexpr DWORD kAnySharing = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  return system::File(
      reinterpret_cast<system::File::Handle>(::CreateFileW(wide_path(path).c_str(),
                                                           0,
                                                           kAnySharing,
                                                           nullptr,
                                                           OPEN_EXISTING,
                                                           FILE_FLAG_BACKUP_SEMANTICS,
                                                           nullptr)));
}

bool makes_folders(const std::string& path) {
  if (is_folder(path)) return true;
  const std::string above = system::folder_of(path);
  if (above != path && above != "." && !makes_folders(above)) return false;
  if (::CreateDirectoryW(wide_path(path).c_str(), nullptr) != 0) return true;
  // Another process may have made it meanwhile; and what follows a last separator is no folder.
  const DWORD error = ::GetLastError();
  if (is_folder(path)) return true;
  ::SetLastError(error);
  return false;
}

}  // namespace

std::filesystem::path to_path(const std::string& text) {
  return std::u8string(text.begin(), text.end());
}

std::string to_text(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

bool exists(const std::string& path) {
  if (opened(path).is_open()) return true;
  const DWORD error = ::GetLastError();
  return error != ERROR_FILE_NOT_FOUND && error != ERROR_PATH_NOT_FOUND &&
         error != ERROR_INVALID_NAME;
}

bool is_folder(const std::string& path) {
  const system::File file = opened(path);
  BY_HANDLE_FILE_INFORMATION info{};
  return file.is_open() &&
         ::GetFileInformationByHandle(reinterpret_cast<HANDLE>(file.get()), &info) != 0 &&
         (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

bool is_name_taken(const std::string& path) {
  return ::GetFileAttributesW(wide_path(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

void make_folders(const std::string& path) {
  if (!makes_folders(path)) system::fail(path, "the folder cannot be made");
}

bool rename_file(const std::string& from, const std::string& to) {
  return ::MoveFileExW(wide_path(from).c_str(), wide_path(to).c_str(), MOVEFILE_REPLACE_EXISTING) !=
         0;
}

bool remove_file(const std::string& path) { return ::DeleteFileW(wide_path(path).c_str()) != 0; }

std::string resolved(const std::string& path) {
  const std::string whole = system::to_utf8(system::full_path(system::to_wide(path)).c_str());
  std::string existing = whole;
  std::string rest;
  while (!exists(existing)) {
    const std::string above = system::folder_of(existing);
    if (above.size() >= existing.size()) return whole;
    rest = '\\' + system::name_of(existing) + rest;
    existing = above;
  }
  std::string known = system::final_path(opened(existing));
  if (known.empty()) return whole;
  if (!rest.empty() && known.back() == '\\') known.pop_back();  // the root of a drive
  return known + rest;
}

}  // namespace quantrain
