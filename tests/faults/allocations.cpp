#include "tests/faults/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"

namespace {

std::atomic<int64_t> made{0};
std::atomic<int64_t> live{0};
constexpr int64_t kNever = int64_t{1} << 62;
std::atomic<int64_t> left{kNever};  // allocations until one fails
std::atomic<bool> all_after{false};

bool fails() {
  made.fetch_add(1, std::memory_order_relaxed);
  if (left.load(std::memory_order_relaxed) == kNever) return false;
  const int64_t before = left.fetch_sub(1, std::memory_order_relaxed);
  return before == 0 || (before < 0 && all_after.load(std::memory_order_relaxed));
}

void* allocate(size_t size, size_t alignment) {
  if (fails()) return nullptr;
  void* block = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    block = std::malloc(size == 0 ? 1 : size);
  } else if (::posix_memalign(&block, alignment, size) != 0) {
    return nullptr;
  }
  if (block != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void* allocate_or_throw(size_t size, size_t alignment = 1) {
  void* const block = allocate(size, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void release(void* block) {
  if (block != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
  std::free(block);
}

}  // namespace

void* operator new(size_t size) { return allocate_or_throw(size); }
void* operator new[](size_t size) { return allocate_or_throw(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, size_t) noexcept { release(block); }
void operator delete[](void* block, size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { release(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { release(block); }

namespace quantrain::test {

Allocations allocations() { return {made.load(), live.load()}; }

FailingAllocation::FailingAllocation(int64_t first, bool after) {
  all_after = after;
  left = first;
}

FailingAllocation::~FailingAllocation() { left = kNever; }

bool FailingAllocation::happened() const { return left < 0; }

Survival fail_each_allocation(const std::function<std::string()>& f,
                              const std::function<std::string()>& after) {
  Survival survival;
  const auto fault = [&](const std::string& what, int64_t point, bool all) {
    survival.fault = "allocation " + std::to_string(point) + (all ? " and later: " : ": ") + what;
  };
  static_cast<void>(f());  // the first call also allocates objects that stay alive
  const std::string expected = f();
  for (const bool all : {false, true}) {
    for (int64_t point = 0;; point += kPointStep) {
      pool::trim();
      const int64_t before = allocations().live;
      bool happened = false;
      bool equal = true;
      std::string wrong;
      try {
        const FailingAllocation failing(point, all);
        const std::string result = f();
        happened = failing.happened();
        equal = result == expected;
      } catch (const std::bad_alloc&) {
        happened = true;
        ++survival.errors;
      } catch (const Error&) {
        happened = true;
        ++survival.errors;
      } catch (const std::exception& error) {
        fault(std::string("threw ") + error.what(), point, all);
        return survival;
      }
      if (!happened) break;
      ++survival.points;
      if (!equal) {
        fault("another result", point, all);
        return survival;
      }
      if (after) wrong = after();
      if (!wrong.empty()) {
        fault(wrong, point, all);
        return survival;
      }
      wrong = {};
      pool::trim();
      if (const int64_t kept = allocations().live - before; kept > 0) {
        fault(std::to_string(kept) + " blocks are left", point, all);
        return survival;
      }
    }
  }
  return survival;
}

}  // namespace quantrain::test
