#include "tests/system.hpp"

#include <windows.h>
// After windows.h, whose types they use.
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <sys/stat.h>
#include <winioctl.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <system_error>

#include "framework/core/file.hpp"
#include "framework/core/path.hpp"
#include "framework/core/system/windows/wide.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::test {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

GuardedMemory guarded_memory(size_t least_bytes, bool guards) {
  GuardedMemory memory{.bytes = (least_bytes + kPage - 1) / kPage * kPage};
  memory.first = static_cast<char*>(
      ::VirtualAlloc(nullptr, memory.bytes + kPage, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  DWORD before = 0;
  if (memory.first == nullptr ||
      (guards &&
       ::VirtualProtect(memory.first + memory.bytes, kPage, PAGE_NOACCESS, &before) == 0)) {
    release(memory);
    throw std::bad_alloc();
  }
  return memory;
}

void release(const GuardedMemory& memory) { ::VirtualFree(memory.first, 0, MEM_RELEASE); }

void trim_memory() {}

void grow_file(const std::string& path, int64_t bytes) {
  HANDLE const file = ::CreateFileW(system::to_wide(path).c_str(),
                                    GENERIC_WRITE,
                                    0,
                                    nullptr,
                                    OPEN_EXISTING,
                                    FILE_ATTRIBUTE_NORMAL,
                                    nullptr);
  DWORD ignored = 0;
  ::DeviceIoControl(file, FSCTL_SET_SPARSE, nullptr, 0, nullptr, 0, &ignored, nullptr);
  LARGE_INTEGER size{};
  size.QuadPart = bytes;
  const bool is_grown =
      ::SetFilePointerEx(file, size, nullptr, FILE_BEGIN) != 0 && ::SetEndOfFile(file) != 0;
  const auto error = static_cast<int>(::GetLastError());
  ::CloseHandle(file);
  if (!is_grown) throw std::system_error(error, std::system_category(), path);
}

bool on_one_processor(const std::function<void()>&) { return false; }

std::string printed(const std::function<void()>& f) {
  const TemporaryFolder folder;
  const std::string path = folder / "output";
  const int output = ::_fileno(stdout);
  std::fflush(stdout);
  const int before = ::_dup(output);
  const int file =
      ::_wopen(to_path(path).c_str(), _O_WRONLY | _O_CREAT | _O_BINARY, _S_IREAD | _S_IWRITE);
  ::_dup2(file, output);
  ::_close(file);
  f();
  std::fflush(stdout);
  ::_dup2(before, output);
  ::_close(before);
  std::string text = text_of(path);
  std::erase(text, '\r');
  return text;
}

void make_pipe(const std::string& path) {
  throw std::system_error(std::make_error_code(std::errc::not_supported), path);
}

void remove_folder(const std::string& path) {
  for (const std::string& name : names_in(path)) {
    const std::string entry = path + '/' + name;
    if (is_folder(entry)) {
      remove_folder(entry);
    } else {
      remove_file(entry);
    }
  }
  ::RemoveDirectoryW(system::wide_path(path).c_str());
}

bool left_out_on_windows(const char* reason) {
  static std::string said;  // once for each test
  const std::string line =
      "left out: \"" + Catch::getResultCapture().getCurrentTestName() + "\": " + reason + '\n';
  if (line != said) std::cout << line;
  said = line;
  return true;
}

bool run_again(const std::vector<std::pair<std::string, std::string>>& variables,
               const std::string& argument) {
  std::wstring program(1 << 15, L'\0');
  ::GetModuleFileNameW(nullptr, program.data(), static_cast<DWORD>(program.size()));
  const auto set = [&](bool is_set) {
    for (const auto& [name, value] : variables) {
      ::_wputenv_s(system::to_wide(name).c_str(), is_set ? system::to_wide(value).c_str() : L"");
    }
  };
  set(true);
  const std::wstring wide = system::to_wide(argument);
  const intptr_t status =
      ::_wspawnl(_P_WAIT, program.c_str(), L"test", wide.c_str(), static_cast<wchar_t*>(nullptr));
  set(false);
  return status == 0;
}

}  // namespace quantrain::test
