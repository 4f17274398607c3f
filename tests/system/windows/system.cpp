#include "tests/system.hpp"

#include <windows.h>
// After windows.h, whose types they use.
#include <process.h>
#include <winioctl.h>

#include <cstdlib>
#include <new>
#include <system_error>

#include "framework/core/system/windows/wide.hpp"

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
