#include "framework/core/system/process.hpp"

#include <windows.h>
// After windows.h, whose types they use.
#include <fcntl.h>
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
#include <string>
#include <vector>

#include "framework/core/system/windows/wide.hpp"

namespace quantrain::system {
namespace {

/// The encoding of the console before show_utf8(); 0 if there is no console.
UINT console_encoding = 0;

/// The next program in this console finds the encoding that it had before.
void show_utf8() {
  if (console_encoding != 0) return;
  console_encoding = ::GetConsoleOutputCP();
  if (console_encoding != 0 && ::SetConsoleOutputCP(CP_UTF8) != 0)
    std::atexit([] { ::SetConsoleOutputCP(console_encoding); });
}

std::vector<std::string> arguments_in_utf8() {
  int count = 0;
  const std::unique_ptr<wchar_t*, decltype(&::LocalFree)> wide(
      ::CommandLineToArgvW(::GetCommandLineW(), &count), &::LocalFree);
  std::vector<std::string> texts;
  for (int i = 0; wide != nullptr && i < count; ++i) texts.push_back(to_utf8(wide.get()[i]));
  return texts;
}

}  // namespace

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

Arguments start_program(int count, const char* const* values) {
  ::_setmode(::_fileno(stdin), _O_BINARY);
  show_utf8();
  // main() gets its arguments in the system's own encoding, which lacks most letters.
  const auto is_equal = [](const char* a, const char* b) { return std::strcmp(a, b) == 0; };
  if (!std::equal(values, values + count, __argv, __argv + __argc, is_equal))
    return {count, values};
  static const std::vector<std::string> texts = arguments_in_utf8();
  static const std::vector<const char*> pointers = [] {
    std::vector<const char*> all;
    for (const std::string& text : texts) all.push_back(text.c_str());
    all.push_back(nullptr);
    return all;
  }();
  if (texts.empty()) return {count, values};
  return {static_cast<int>(texts.size()), pointers.data()};
}

}  // namespace quantrain::system
