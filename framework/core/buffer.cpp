#include "framework/core/buffer.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

namespace quantrain::pool {
namespace {

// Four size classes per power of two: at most a quarter of a block is waste (and a page of a large
// one).
size_t size_class(size_t bytes) {
  const size_t wanted = std::max<size_t>(bytes + kSlack, 256);
  const size_t step = std::bit_floor(wanted) / 4;
  return (wanted + step - 1) & ~(step - 1);
}

/// Number of the class of blocks of `size` bytes.
size_t index_of(size_t size) {
  const auto width = static_cast<size_t>(std::bit_width(size));
  return 4 * width + (size >> (width - 3)) % 4;
}

/// The size of the blocks of the class that index_of() gives.
size_t size_of(size_t index) { return (4 + index % 4) << (index / 4 - 3); }

// The system has large blocks begin at one and the same place in a page. Elements of two at the
// same index then share a set of the first-level cache, and a load from one may wait for a store to
// the other, because the processor compares the lower 12 bits of addresses first. So here each
// begins at another line. Not with AddressSanitizer, which would see less.
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
constexpr bool kSpreads = false;
#else
constexpr bool kSpreads = true;
#endif
constexpr size_t kPage = 4096;
// For smaller blocks, an extra page would be too much overhead.
constexpr bool is_spread(size_t size) { return kSpreads && size >= 16 * kPage; }

/// A block of `size` bytes, of large ones the one with this number. Throws: std::bad_alloc
void* new_block(size_t size, size_t number) {
  if (!is_spread(size)) return ::operator new (size, std::align_val_t{kAlignment});
  void* const page = ::operator new (size + kPage, std::align_val_t{kPage});
  // 13 has no divisor in common with a page's 64 lines, so that all are taken in turn.
  return static_cast<char*>(page) + number * 13 * kAlignment % kPage;
}

void delete_block(void* block, size_t size) {
  if (!is_spread(size)) return ::operator delete (block, std::align_val_t{kAlignment});
  const size_t into_page = reinterpret_cast<uintptr_t>(block) % kPage;
  ::operator delete (static_cast<char*>(block) - into_page, std::align_val_t{kPage});
}

class Pool {
 public:
  void* allocate(size_t bytes) {
    if (bytes > kMaxBytes) throw std::bad_alloc();
    const size_t size = size_class(bytes);
    const std::lock_guard lock(mutex_);
    std::vector<void*>& blocks = free_[index_of(size)];
    void* block = nullptr;
    if (blocks.empty()) {
      block = from_system(size);
      ++counters_.system_allocations;
    } else {
      block = blocks.back();
      blocks.pop_back();
    }
    ++counters_.allocations;
    counters_.bytes_in_use += static_cast<int64_t>(size);
    counters_.peak_bytes_in_use = std::max(counters_.peak_bytes_in_use, counters_.bytes_in_use);
    return block;
  }

  void release(void* block, size_t bytes) {
    const size_t size = size_class(bytes);
    const std::lock_guard lock(mutex_);
    counters_.bytes_in_use -= static_cast<int64_t>(size);
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
    delete_block(block, size);  // a reused block would hide a use after free
#else
    try {
      free_[index_of(size)].push_back(block);
    } catch (const std::bad_alloc&) {  // no memory to keep it by
      delete_block(block, size);
    }
#endif
  }

  Counters counters() {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    free_kept();
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  // Blocks of other sizes must not stand in the way of this one.
  void* from_system(size_t size) {
    if (is_spread(size)) ++spread_;
    try {
      return new_block(size, spread_);
    } catch (const std::bad_alloc&) {
      free_kept();
      return new_block(size, spread_);
    }
  }

  void free_kept() {
    for (size_t i = 0; i < free_.size(); ++i) {
      for (void* block : free_[i]) delete_block(block, size_of(i));
      free_[i].clear();
    }
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, 4 * (std::numeric_limits<size_t>::digits + 1)> free_;
  size_t spread_ = 0;  // blocks so far
  Counters counters_{};
};

Pool& instance();

// Never destroyed: buffers of static storage duration may outlive any order of destruction. While a
// process forks nobody else has the lock, which the child would find closed forever.
Pool* new_pool() {
  ::pthread_atfork(
      [] { instance().lock(); }, [] { instance().unlock(); }, [] { instance().unlock(); });
  return new Pool;
}

Pool& instance() {
  static Pool& pool = *new_pool();
  return pool;
}

}  // namespace

void* allocate(size_t bytes) { return instance().allocate(bytes); }

void release(void* block, size_t bytes) noexcept { instance().release(block, bytes); }

Counters counters() { return instance().counters(); }

void trim() { instance().trim(); }

}  // namespace quantrain::pool
