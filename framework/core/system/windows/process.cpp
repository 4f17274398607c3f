#include "framework/core/system/process.hpp"

#include <windows.h>
// After windows.h, whose types they use.
#include <io.h>
#include <ntsecapi.h>
#include <psapi.h>
#include <shellapi.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "framework/core/system/windows/wide.hpp"

namespace quantrain::system {

int64_t process_id() { return ::GetCurrentProcessId(); }

int processors_of_mask() {
  DWORD_PTR own = 0;
  DWORD_PTR all = 0;
  return ::GetProcessAffinityMask(::GetCurrentProcess(), &own, &all) != 0
             ? std::popcount(uint64_t{own})
             : 0;
}

int64_t peak_memory() {
  PROCESS_MEMORY_COUNTERS counters{};
  ::K32GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters);
  return static_cast<int64_t>(counters.PeakWorkingSetSize);
}

bool random_bits(uint64_t& bits) { return ::RtlGenRandom(&bits, sizeof bits) != 0; }

void at_fork(void (*)(), void (*)(), void (*)()) {}

bool is_terminal(std::FILE* stream) {
  const int file = ::_fileno(stream);
  if (::_isatty(file) == 0) return false;
  auto* const console = reinterpret_cast<HANDLE>(::_get_osfhandle(file));
  DWORD mode = 0;
  return ::GetConsoleMode(console, &mode) != 0 &&
         ::SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

void on_interrupt(void (*handler)(int)) {
  for (const int number : {SIGINT, SIGTERM, SIGBREAK}) {
    if (std::signal(number, SIG_IGN) != SIG_IGN) std::signal(number, handler);
  }
}

void write_error(const char* text) {
  static_cast<void>(::_write(2, text, static_cast<unsigned>(std::strlen(text))));
}

// main() gets its arguments in the system's own encoding, which lacks most letters.
Arguments::Arguments(int count, const char* const* values) {
  const auto is_equal = [](const char* a, const char* b) { return std::strcmp(a, b) == 0; };
  if (std::equal(values, values + count, __argv, __argv + __argc, is_equal)) {
    int wide_count = 0;
    const std::unique_ptr<wchar_t*, decltype(&::LocalFree)> wide(
        ::CommandLineToArgvW(::GetCommandLineW(), &wide_count), &::LocalFree);
    for (int i = 0; wide != nullptr && i < wide_count; ++i)
      texts_.push_back(to_utf8(wide.get()[i]));
  }
  if (texts_.empty()) texts_.assign(values, values + count);
  for (const std::string& text : texts_) values_.push_back(text.c_str());
  values_.push_back(nullptr);
}

}  // namespace quantrain::system
