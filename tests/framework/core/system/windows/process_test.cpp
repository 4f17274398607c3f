#include "framework/core/system/process.hpp"

#include <windows.h>

#include <cstdlib>

#include "framework/core/system/windows/wide.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("the arguments of main are those of the command line in UTF-8", "[core][process]") {
  const auto [count, values] = system::start_program(__argc, __argv);
  REQUIRE(count == __argc);
  CHECK(values[count] == nullptr);
  std::wstring program(1 << 15, L'\0');
  program.resize(::GetModuleFileNameW(nullptr, program.data(), 1 << 15));
  const std::wstring name = program.substr(program.rfind(L'\\') + 1);
  CHECK_THAT(values[0], test::ContainsSubstring(system::to_utf8(name.c_str())));
}

TEST_CASE("a console shows UTF-8", "[core][process]") {
  const bool is_new = ::AllocConsole() != 0;
  system::start_program(__argc, __argv);
  if (::GetConsoleOutputCP() != 0) CHECK(::GetConsoleOutputCP() == CP_UTF8);
  if (is_new) ::FreeConsole();
}

}  // namespace quantrain
