#include "framework/core/system/memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <new>

namespace quantrain::system {

#if defined(MADV_HUGEPAGE)
namespace {

constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kMostPage = size_t{1} << 16;  // on some Arm systems, usual pages have 64 KiB

constexpr size_t mapped_bytes(size_t bytes) { return (bytes + kMostPage - 1) & ~(kMostPage - 1); }

}  // namespace

size_t large_page() { return kLargePage; }

void* map(size_t bytes) {
  const size_t wanted = mapped_bytes(bytes);
  void* const all = ::mmap(
      nullptr, wanted + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(all);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kLargePage;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + wanted, kLargePage - before);
  ::madvise(begin + before, wanted, MADV_HUGEPAGE);  // a wish that the system may refuse
  return begin + before;
}

void unmap(void* block, size_t bytes) { ::munmap(block, mapped_bytes(bytes)); }
#else
size_t large_page() { return std::numeric_limits<size_t>::max(); }
void* map(size_t) { throw std::bad_alloc(); }
void unmap(void*, size_t) {}
#endif

}  // namespace quantrain::system
