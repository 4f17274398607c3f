#include "framework/core/system/file.hpp"

#include <windows.h>
// After windows.h, whose types they use.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cstring>
#include <cwchar>
#include <system_error>

#include "framework/core/error.hpp"
#include "framework/core/system/windows/wide.hpp"

namespace quantrain::system {
namespace {

constexpr DWORD kAnySharing = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
// Without this flag, folders cannot be opened.
constexpr DWORD kFoldersToo = FILE_FLAG_BACKUP_SEMANTICS;

HANDLE handle(const File& file) { return reinterpret_cast<HANDLE>(file.get()); }

/// The path of an entry of a folder. Verbatim paths must not have a separator twice, and "C:" is a
/// drive's current folder, not its root.
std::wstring entry_of(const std::wstring& folder, const std::wstring& name) {
  const bool ends = !folder.empty() && std::wcschr(LR"(\/:)", folder.back()) != nullptr;
  return ends ? folder + name : folder + L'\\' + name;
}

/// "C:name" is a file of the drive's current folder, which has another path.
std::string with_root(const std::string& path) {
  const bool is_relative = path.size() > 2 && path[1] == ':' && path[2] != '/' && path[2] != '\\';
  return is_relative ? to_utf8(full_path(to_wide(path)).c_str()) : path;
}

File open(const std::wstring& path,
          DWORD access,
          DWORD sharing,
          DWORD disposition,
          DWORD flags = 0,
          SECURITY_ATTRIBUTES* security = nullptr) {
  return File(reinterpret_cast<File::Handle>(::CreateFileW(path.c_str(),
                                                           access,
                                                           sharing,
                                                           security,
                                                           disposition,
                                                           FILE_ATTRIBUTE_NORMAL | flags,
                                                           nullptr)));
}

/// What an open file is.
struct Information {
  explicit Information(const File& file) {
    is_disk = ::GetFileType(handle(file)) == FILE_TYPE_DISK;
    is_known = is_disk && ::GetFileInformationByHandle(handle(file), &info) != 0;
  }
  bool has(DWORD attribute) const { return is_known && (info.dwFileAttributes & attribute) != 0; }
  bool is_regular() const { return is_known && !has(FILE_ATTRIBUTE_DIRECTORY); }
  int64_t size() const { return int64_t{info.nFileSizeHigh} << 32 | info.nFileSizeLow; }

  bool is_disk = false;
  bool is_known = false;
  BY_HANDLE_FILE_INFORMATION info{};
};

/// Who may do what with a file; empty if there is none, or the system does not say.
std::vector<uint64_t> security_of(const std::wstring& path) {
  DWORD bytes = 0;
  ::GetFileSecurityW(path.c_str(), DACL_SECURITY_INFORMATION, nullptr, 0, &bytes);
  std::vector<uint64_t> security((bytes + 7) / 8);
  if (::GetFileSecurityW(path.c_str(), DACL_SECURITY_INFORMATION, security.data(), bytes, &bytes) ==
      0)
    security.clear();
  return security;
}

/// In the headers of mingw-w64 only for newer systems than the compiler's default.
struct RenameInformation {
  DWORD flags = 0;
  HANDLE folder = nullptr;
  DWORD bytes = 0;
  wchar_t name[1] = {};
};

/// Renames an open file, over another one if there is one.
bool rename_over(const File& file, const std::wstring& target) {
  constexpr auto kFileRenameInfoEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);
  constexpr DWORD kReplace = 1;
  constexpr DWORD kPosix = 2;  // a file that others have open is replaced, too
  const size_t bytes = target.size() * sizeof(wchar_t);
  std::vector<uint64_t> memory((sizeof(RenameInformation) + bytes + 7) / 8);
  auto* const information = new (memory.data()) RenameInformation;
  information->bytes = static_cast<DWORD>(bytes);
  std::memcpy(information->name, target.c_str(), bytes + sizeof(wchar_t));
  const auto size = static_cast<DWORD>(memory.size() * sizeof(uint64_t));
  information->flags = kReplace | kPosix;
  if (::SetFileInformationByHandle(handle(file), kFileRenameInfoEx, information, size) != 0)
    return true;
  // File systems other than NTFS, Windows before 10 and Wine before 10 do not know this.
  const DWORD error = ::GetLastError();
  if (error != ERROR_INVALID_PARAMETER && error != ERROR_NOT_SUPPORTED &&
      error != ERROR_INVALID_FUNCTION)
    return false;
  information->flags = kReplace;
  return ::SetFileInformationByHandle(handle(file), FileRenameInfo, information, size) != 0;
}

bool write_all(const File& file, const uint8_t* bytes, size_t count) {
  constexpr size_t kMostAtOnce = size_t{1} << 26;
  while (count > 0) {
    DWORD written = 0;
    const auto part = static_cast<DWORD>(std::min(count, kMostAtOnce));
    if (::WriteFile(handle(file), bytes, part, &written, nullptr) == 0) return false;
    if (written == 0) ::SetLastError(ERROR_WRITE_FAULT);
    if (written == 0) return false;
    bytes += written;
    count -= written;
  }
  return true;
}

}  // namespace

std::string last_error() {
  const std::error_code error(static_cast<int>(::GetLastError()), std::system_category());
  // The same words as on other systems, where they have some.
  const std::error_condition condition = error.default_error_condition();
  return condition.category() == std::generic_category() ? condition.message() : error.message();
}

File::~File() {
  const DWORD error = ::GetLastError();
  close();
  ::SetLastError(error);
}

bool File::close() { return !is_open() || ::CloseHandle(reinterpret_cast<HANDLE>(release())) != 0; }

std::string folder_of(const std::string& path) {
  const size_t end = path.find_last_of("/\\:");  // a drive's current folder is "C:"
  if (end == std::string::npos) return ".";
  const bool is_root = end == 0 || path[end] == ':' || path[end - 1] == ':';
  return path.substr(0, is_root ? end + 1 : end);
}

std::string name_of(const std::string& path) { return path.substr(path.find_last_of("/\\:") + 1); }

std::string resolve(const std::string& path) {
  const std::wstring wide = wide_path(path);
  const DWORD attributes = ::GetFileAttributesW(wide.c_str());
  const File file = open(wide, 0, kAnySharing, OPEN_EXISTING, kFoldersToo);
  if (!file.is_open()) {
    const DWORD error = ::GetLastError();
    const bool is_missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
    if (is_missing && attributes == INVALID_FILE_ATTRIBUTES) return with_root(path);
    fail(path, "cannot be written");  // also a link to a file that does not exist
  }
  const Information info(file);
  if (!info.is_regular()) throw DataError("file", path, ": is not a regular file");
  if (info.has(FILE_ATTRIBUTE_READONLY)) ::SetLastError(ERROR_ACCESS_DENIED);
  // Another program that reads the file now may soon close it.
  if (info.has(FILE_ATTRIBUTE_READONLY) ||
      (!open(wide, GENERIC_WRITE, kAnySharing, OPEN_EXISTING).is_open() &&
       ::GetLastError() != ERROR_SHARING_VIOLATION))
    fail(path, "cannot be written");
  if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) == 0) return with_root(path);
  const std::string target = final_path(file);
  if (target.empty()) fail(path, "cannot be resolved");
  return target;
}

File create_nameless(const std::string&) { return File(); }

// Nobody can open the file for writing or remove it as long as it is open.
File create(const std::string& name, const std::string& target) {
  std::vector<uint64_t> security = security_of(wide_path(target));
  SECURITY_ATTRIBUTES attributes{sizeof attributes, security.data(), FALSE};
  return open(wide_path(name),
              GENERIC_WRITE | DELETE,
              FILE_SHARE_READ,
              CREATE_NEW,
              0,
              security.empty() ? nullptr : &attributes);
}

bool is_name_taken() {
  return ::GetLastError() == ERROR_FILE_EXISTS || ::GetLastError() == ERROR_ALREADY_EXISTS;
}

bool link(const File&, const std::string&) { return false; }

bool write(const File& file, std::span<const uint8_t> bytes) {
  return write_all(file, bytes.data(), bytes.size());
}

bool flush(const File& file) { return ::FlushFileBuffers(handle(file)) != 0; }

bool replace(const File& file, const std::string&, const std::string& target) {
  const std::wstring wide = verbatim(wide_path(target));
  // Scanners for viruses, and indexers, open new files for a moment. So do other writers.
  constexpr DWORD kLongestWait = 512;  // milliseconds
  for (DWORD wait = 1; !rename_over(file, wide); wait *= 2) {
    const DWORD error = ::GetLastError();
    if ((error != ERROR_ACCESS_DENIED && error != ERROR_SHARING_VIOLATION) || wait > kLongestWait)
      return false;
    ::Sleep(wait);
  }
  return true;
}

void flush_names(const std::string& folder) {
  const File opened =
      open(wide_path(folder), GENERIC_WRITE, kAnySharing, OPEN_EXISTING, kFoldersToo);
  if (opened.is_open()) ::FlushFileBuffers(handle(opened));
}

void discard(File& file, const std::string&) {
  FILE_DISPOSITION_INFO disposition{TRUE};
  ::SetFileInformationByHandle(handle(file), FileDispositionInfo, &disposition, sizeof disposition);
  file.close();
}

// The system removes no file that create() holds open.
void remove_unless_held(const std::string& name) {
  const std::wstring wide = wide_path(name);
  const DWORD attributes = ::GetFileAttributesW(wide.c_str());
  if ((attributes & (FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY)) == 0)
    ::DeleteFileW(wide.c_str());
}

bool append(const std::string& path, std::string_view text) {
  const std::wstring wide = wide_path(path);
  const File file = open(wide, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, OPEN_ALWAYS);
  const bool is_new = ::GetLastError() != ERROR_ALREADY_EXISTS;
  LARGE_INTEGER size{};
  if (!file.is_open() || ::SetFilePointerEx(handle(file), {}, &size, FILE_END) == 0) return false;
  if (write_all(file, reinterpret_cast<const uint8_t*>(text.data()), text.size()) && flush(file))
    return true;
  const DWORD error = ::GetLastError();
  if (is_new) {
    // The path may be a link to the file that was missing.
    ::DeleteFileW(wide_path(final_path(file)).c_str());
  } else if (::SetFilePointerEx(handle(file), size, nullptr, FILE_BEGIN) != 0) {
    ::SetEndOfFile(handle(file));
  }
  ::SetLastError(error);
  return false;
}

bool list(const std::string& folder, std::vector<std::string>& names) {
  if (folder.empty()) {  // "\*" would be all of a drive
    ::SetLastError(ERROR_PATH_NOT_FOUND);
    return false;
  }
  WIN32_FIND_DATAW entry{};
  HANDLE const search = ::FindFirstFileW(entry_of(wide_path(folder), L"*").c_str(), &entry);
  if (search == INVALID_HANDLE_VALUE) return ::GetLastError() == ERROR_FILE_NOT_FOUND;
  struct Close {
    ~Close() { ::FindClose(search); }
    HANDLE search;
  };
  const Close at_end{search};
  do {
    std::string name = to_utf8(entry.cFileName);
    if (name != "." && name != "..") names.push_back(std::move(name));
  } while (::FindNextFileW(search, &entry) != 0);
  return ::GetLastError() == ERROR_NO_MORE_FILES;
}

Input open_to_read(const std::string& path) {
  Input input;
  File file = open(wide_path(path), GENERIC_READ, kAnySharing, OPEN_EXISTING, kFoldersToo);
  if (!file.is_open()) return input;
  const Information info(file);
  input.is_regular = info.is_regular();
  input.size = info.size();
  if (!input.is_regular) return input;
  const int descriptor = ::_open_osfhandle(file.get(), _O_RDONLY | _O_BINARY);
  if (descriptor < 0) return input;
  file.release();
  input.file = ::_fdopen(descriptor, "rb");
  if (input.file == nullptr) ::_close(descriptor);
  return input;
}

Inside open_inside(const std::string& folder, const std::vector<std::string>& parts) {
  Inside inside;
  std::wstring path = verbatim(to_wide(folder));
  // The folders stay open, so that nobody can rename one and put a link there.
  std::vector<File> way;
  for (const std::string& part : parts) {
    const bool is_name = std::all_of(part.begin(), part.end(), [](char c) {
      return static_cast<unsigned char>(c) >= ' ' && std::strchr("\\/:*?\"<>|", c) == nullptr;
    });
    if (!is_name) {
      ::SetLastError(ERROR_INVALID_NAME);
      return inside;
    }
    path = entry_of(path, to_wide(part));
    File at = open(path,
                   GENERIC_READ,
                   FILE_SHARE_READ | FILE_SHARE_WRITE,
                   OPEN_EXISTING,
                   kFoldersToo | FILE_FLAG_OPEN_REPARSE_POINT);
    if (!at.is_open()) return inside;
    const Information info(at);
    inside.is_link = info.has(FILE_ATTRIBUTE_REPARSE_POINT);
    if (inside.is_link) return inside;
    inside.is_regular = info.is_regular();
    inside.size = info.size();
    inside.id = {info.info.dwVolumeSerialNumber,
                 uint64_t{info.info.nFileIndexHigh} << 32 | info.info.nFileIndexLow};
    way.push_back(std::move(at));
  }
  if (!way.empty()) inside.file = std::move(way.back());
  return inside;
}

bool read_at(const File& file, int64_t position, std::span<uint8_t> out) {
  constexpr size_t kMostAtOnce = size_t{1} << 26;
  while (!out.empty()) {
    OVERLAPPED at{};
    at.Offset = static_cast<DWORD>(position);
    at.OffsetHigh = static_cast<DWORD>(position >> 32);
    DWORD count = 0;
    const auto part = static_cast<DWORD>(std::min(out.size(), kMostAtOnce));
    if (::ReadFile(handle(file), out.data(), part, &count, &at) == 0 || count == 0) return false;
    position += count;
    out = out.subspan(count);
  }
  return true;
}

}  // namespace quantrain::system
