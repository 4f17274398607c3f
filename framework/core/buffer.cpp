#include "framework/core/buffer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "framework/core/system/memory.hpp"
#include "framework/core/system/process.hpp"

namespace quantrain::pool {
namespace {

// The size of a block that holds `bytes` bytes and then kSlack bytes: at least 256, rounded up to a
// size class. Each range [2^k, 2^(k+1)) has four classes, so rounding adds less than a quarter.
// new_block() adds a page to large blocks.
size_t size_class(size_t bytes) {
  const size_t wanted = std::max<size_t>(bytes + kSlack, 256);
  const size_t step = std::bit_floor(wanted) / 4;
  return (wanted + step - 1) & ~(step - 1);
}

/// Index of the class whose blocks have `size` bytes.
size_t index_of(size_t size) {
  const auto width = static_cast<size_t>(std::bit_width(size));
  return 4 * width + (size >> (width - 3)) % 4;
}

/// Block size of a class. The inverse of index_of().
size_t size_of(size_t index) { return (4 + index % 4) << (index / 4 - 3); }

// The system starts all large blocks at the same offset in a page. Elements with the same index in
// two such blocks then share a set of the first-level cache. A load from one block may also wait
// for a store to the other, because the processor compares the lower 12 bits of addresses first. So
// large blocks here begin at different cache lines of their pages. This is off with
// AddressSanitizer, which would otherwise detect fewer errors.
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
constexpr bool kSpreads = false;
#else
constexpr bool kSpreads = true;
#endif
constexpr size_t kPage = 4096;
// For smaller blocks, an extra page would be too much overhead.
constexpr bool is_spread(size_t size) { return kSpreads && size >= 16 * kPage; }

// Blocks of at least a large page are mapped on their own and ask for such pages, so that loops
// over large tensors wait less often for translations of addresses. In memory of malloc(), the
// advice would outlive the block.
bool is_mapped(size_t size) { return size >= system::large_page(); }

/// A block of `size` bytes. A large block begins at a cache line that depends on `number`, the
/// count of large blocks so far.
/// Throws: std::bad_alloc
void* new_block(size_t size, size_t number) {
  if (!is_spread(size)) return ::operator new (size, std::align_val_t{kAlignment});
  void* const page = is_mapped(size) ? system::map(size + kPage)
                                     : ::operator new (size + kPage, std::align_val_t{kPage});
  // 13 and the 64 lines of a page are coprime, so consecutive blocks go through all lines.
  return static_cast<char*>(page) + number * 13 * kAlignment % kPage;
}

void delete_block(void* block, size_t size) {
  if (!is_spread(size)) return ::operator delete (block, std::align_val_t{kAlignment});
  const size_t into_page = reinterpret_cast<uintptr_t>(block) % kPage;
  void* const page = static_cast<char*>(block) - into_page;
  if (is_mapped(size)) return system::unmap(page, size + kPage);
  ::operator delete (page, std::align_val_t{kPage});
}

/// A few freed blocks of each class that is not too large, for one of many threads. All tasks of a
/// loop take their scratch at the same time, and with a common list they would wait for each other
/// longer than they work.
class alignas(2 * kAlignment) Shelf {
 public:
  static constexpr size_t kLargest = size_t{1} << 20;  // bytes of a block

  /// Null if there is none.
  void* take(size_t index) {
    const std::lock_guard lock(mutex_);
    void* const block = first_[index];
    if (block == nullptr) return nullptr;
    first_[index] = *static_cast<void**>(block);
    --count_[index];
    return block;
  }
  /// False if the shelf is full.
  bool put(size_t index, void* block) {
    const std::lock_guard lock(mutex_);
    if (count_[index] == kMost) return false;
    *static_cast<void**>(block) = first_[index];
    first_[index] = block;
    ++count_[index];
    return true;
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr uint8_t kMost = 4;
  static constexpr size_t kClasses = 4 * 21 + 1;  // index_of(kLargest) + 1

  std::mutex mutex_;
  // Each block holds the address of the next.
  std::array<void*, kClasses> first_{};
  std::array<uint8_t, kClasses> count_{};
};

constexpr size_t kShelves = 16;

/// The number of this thread's shelf. More than kShelves threads share shelves.
size_t shelf_number() {
  static std::atomic<size_t> threads = 0;
  thread_local const size_t number = threads.fetch_add(1, std::memory_order_relaxed) % kShelves;
  return number;
}

class Pool {
 public:
  void* allocate(size_t bytes) {
    if (bytes > kMaxBytes) throw std::bad_alloc();
    const size_t size = size_class(bytes);
    const size_t index = index_of(size);
    void* block = size <= Shelf::kLargest ? shelves_[shelf_number()].take(index) : nullptr;
    if (block == nullptr) block = kept_or_new(size, index);
    allocations_.fetch_add(1, std::memory_order_relaxed);
    const auto own = static_cast<int64_t>(size);
    const int64_t used = used_.fetch_add(own, std::memory_order_relaxed) + own;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (used > peak && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
    }
    return block;
  }

  void release(void* block, size_t bytes) {
    const size_t size = size_class(bytes);
    used_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
#if defined(__SANITIZE_ADDRESS__) || defined(QUANTRAIN_SANITIZE_ADDRESS)
    delete_block(block, size);  // a reused block would hide a use after free
#else
    const size_t index = index_of(size);
    if (size <= Shelf::kLargest && shelves_[shelf_number()].put(index, block)) return;
    const std::lock_guard lock(mutex_);
    try {
      free_[index].push_back(block);
    } catch (const std::bad_alloc&) {  // no memory for the list of kept blocks
      delete_block(block, size);
    }
#endif
  }

  Counters counters() {
    const std::lock_guard lock(mutex_);
    return {allocations_.load(std::memory_order_relaxed),
            system_allocations_,
            used_.load(std::memory_order_relaxed),
            peak_.load(std::memory_order_relaxed)};
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    free_kept();
  }

  void lock() {
    mutex_.lock();
    for (Shelf& shelf : shelves_) shelf.lock();
  }
  void unlock() {
    for (Shelf& shelf : shelves_) shelf.unlock();
    mutex_.unlock();
  }

 private:
  void* kept_or_new(size_t size, size_t index) {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& blocks = free_[index];
    if (!blocks.empty()) {
      void* const block = blocks.back();
      blocks.pop_back();
      return block;
    }
    // Those of threads that have ended or rest, so that the pool never keeps more than was in use.
    if (size <= Shelf::kLargest) {
      for (Shelf& shelf : shelves_) {
        if (void* const block = shelf.take(index)) return block;
      }
    }
    void* const block = from_system(size);
    ++system_allocations_;
    return block;
  }

  // If the system has no memory left, gives back the freed blocks of all sizes and tries again.
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
    for (Shelf& shelf : shelves_) {
      for (size_t i = index_of(size_class(0)); i <= index_of(Shelf::kLargest); ++i) {
        while (void* const block = shelf.take(i)) delete_block(block, size_of(i));
      }
    }
    for (size_t i = 0; i < free_.size(); ++i) {
      for (void* block : free_[i]) delete_block(block, size_of(i));
      free_[i].clear();
    }
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, 4 * (std::numeric_limits<size_t>::digits + 1)> free_;
  size_t spread_ = 0;  // large blocks requested from the system so far
  int64_t system_allocations_ = 0;
  std::array<Shelf, kShelves> shelves_;
  // Counters apart from what the shelves' threads write.
  alignas(2 * kAlignment) std::atomic<int64_t> used_ = 0;
  std::atomic<int64_t> peak_ = 0;
  std::atomic<int64_t> allocations_ = 0;
};

Pool& instance();

// The pool is never destroyed, because static buffers may be destroyed later than it would be.
// fork() takes the lock first, so that the child cannot inherit a lock that another thread holds.
Pool* new_pool() {
  system::at_fork(
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
