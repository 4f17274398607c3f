#include "framework/core/system/process.hpp"

#include <cstdio>
#include <vector>

#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {

TEST_CASE("a program gets its arguments, and the bytes of its input as they are",
          "[core][process]") {
  const test::TemporaryFolder folder;
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<uint8_t>(i));
  for (const int byte : {13, 10, 26, 10, 13, 26}) bytes.push_back(static_cast<uint8_t>(byte));
  test::write_bytes(folder / "input", bytes);
  REQUIRE(std::freopen((folder / "input").c_str(), "r", stdin) != nullptr);
  const char* const given[] = {"program", "argument", nullptr};
  const auto [count, values] = system::start_program(2, given);
  std::vector<uint8_t> read(bytes.size() + 1);
  read.resize(std::fread(read.data(), 1, read.size(), stdin));
  CHECK(read == bytes);
  CHECK(count == 2);
  CHECK(values == given);
}

}  // namespace quantrain
