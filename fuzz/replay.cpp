// Passes the files of folders to a target, one after the other. Builds without libFuzzer run the
// seeds with this program. Fails if no file was accepted.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "framework/core/error.hpp"
#include "fuzz/harness.hpp"

int main(int argc, char** argv) {
  using namespace quantrain;
  int files = 0;
  int accepted = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
      const std::vector<uint8_t> bytes(chars.begin(), chars.end());
      ++files;
      try {
        const bool is_accepted = fuzz::accepts(bytes);
        accepted += is_accepted;
        std::printf("%s: %s\n", entry.path().c_str(), is_accepted ? "accepted" : "passed over");
      } catch (const Error& error) {
        std::printf("%s: %s\n", entry.path().c_str(), error.what());
      }
    }
  }
  std::printf("%d of %d accepted\n", accepted, files);
  return accepted > 0 ? 0 : 1;
}
