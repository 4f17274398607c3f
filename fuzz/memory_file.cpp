#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fuzz/harness.hpp"

namespace quantrain::fuzz {

void finding(const std::string& text) {
  std::fprintf(stderr, "quantrain: %s\n", text.c_str());
  std::abort();
}

MemoryFile::MemoryFile(std::span<const uint8_t> bytes)
    : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (n <= 0) finding("the input cannot be written to memory");
    done += static_cast<size_t>(n);
  }
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

}  // namespace quantrain::fuzz
