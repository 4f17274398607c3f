#include "fuzz/counted_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);
}

namespace {

std::atomic<int64_t> used{0};
std::atomic<int64_t> peak{0};

void* counted(void* block) {
  if (block == nullptr) return block;
  const int64_t now = used += static_cast<int64_t>(malloc_usable_size(block));
  int64_t known = peak;
  while (known < now && !peak.compare_exchange_weak(known, now)) {
  }
  return block;
}

void uncount(void* block) {
  if (block != nullptr) used -= static_cast<int64_t>(malloc_usable_size(block));
}

}  // namespace

extern "C" {

void* malloc(size_t size) { return counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void* realloc(void* block, size_t size) {
  uncount(block);
  return counted(__libc_realloc(block, size));
}
void* memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) {
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = counted(__libc_memalign(alignment, size));
  return *block == nullptr ? ENOMEM : 0;
}
void free(void* block) {
  uncount(block);
  __libc_free(block);
}

}  // extern "C"

namespace quantrain::fuzz {

int64_t bytes_in_use() { return used; }
int64_t peak_bytes() { return peak; }
void restart_peak() { peak = used.load(); }

}  // namespace quantrain::fuzz
