#include <sys/mman.h>

#include <fstream>
#include <sstream>
#include <string>

#include "framework/core/buffer.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

namespace quantrain {
namespace {

/// The flags of the mapping that holds an address, as Linux lists them in /proc/self/smaps: two
/// letters each, with spaces around them. Empty if the system does not list them.
[[maybe_unused]] std::string mapping_flags(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  uintptr_t begin = 0;
  uintptr_t end = 0;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream range(line);
    char dash = 0;
    uintptr_t first = 0;
    uintptr_t last = 0;
    if (range >> std::hex >> first >> dash >> last && dash == '-') begin = first, end = last;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (line.starts_with("VmFlags:") && begin <= at && at < end) return line.substr(8) + " ";
  }
  return {};
}

}  // namespace

TEST_CASE("blocks of 2 MiB and more ask for large pages", "[core][buffer]") {
#if defined(MADV_HUGEPAGE)
  const auto asks = [](const void* address) {
    return mapping_flags(address).find(" hg ") != std::string::npos;
  };
  // Emulators, and systems without large pages, do not show the advice.
  constexpr size_t kBytes = size_t{4} << 20;
  void* const probe =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(probe != MAP_FAILED);
  ::madvise(probe, kBytes, MADV_HUGEPAGE);
  const bool shown = asks(probe);
  ::munmap(probe, kBytes);
  if (test::kSanitized || !shown) return;
  pool::trim();
  for (const int64_t mib : {2, 3, 8, 20}) {
    INFO(mib << " MiB");
    const Buffer<uint8_t> block(mib << 20);
    CHECK(asks(block.data()));
    CHECK(asks(block.data() + block.size() - 1));
  }
  const Buffer<uint8_t> small(int64_t{1} << 20);
  CHECK_FALSE(asks(small.data()));
#endif
}

}  // namespace quantrain
