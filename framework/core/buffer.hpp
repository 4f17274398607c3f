#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace quantrain {

/// Memory for values. Blocks are aligned to kAlignment bytes and followed by kSlack readable bytes,
/// so that a kernel may load a whole vector at the end. Large blocks start at varying offsets in a
/// page, so that equal indices of two blocks do not compete for one cache set. Blocks of 2 MiB and
/// more ask the system for large pages. Freed blocks are kept by size class and reused, first by
/// the thread that freed them. Safe to call from several threads.
namespace pool {

inline constexpr size_t kAlignment = 64;
inline constexpr size_t kSlack = 64;
/// Larger than the memory of any machine.
inline constexpr size_t kMaxBytes = size_t{1} << 60;

/// Uninitialised block of at least `bytes` bytes. Throws: std::bad_alloc if there is no memory, or
/// if `bytes` exceeds kMaxBytes.
void* allocate(size_t bytes);
/// Frees a block. `bytes` is the size that allocate() was called with.
void release(void* block, size_t bytes) noexcept;

/// Counts since the program started, and bytes in use.
struct Counters {
  int64_t allocations;         ///< calls of allocate()
  int64_t system_allocations;  ///< of these, calls that no freed block could serve
  int64_t bytes_in_use;        ///< now
  int64_t peak_bytes_in_use;   ///< the most since the program started
};
Counters counters();
/// Returns all freed blocks to the system.
void trim();

}  // namespace pool

/// A fixed number of uninitialised elements from the pool. Movable, not copyable.
template <class T>
class Buffer {
  static_assert(std::is_trivial_v<T>);

 public:
  Buffer() = default;
  /// Throws: std::bad_alloc if there is no memory, size is negative, or size * sizeof(T) exceeds
  /// kMaxBytes.
  explicit Buffer(int64_t size)
      : data_(static_cast<T*>(pool::allocate(bytes(size)))), size_(size) {}
  /// Takes the memory of a buffer whose elements have the same size.
  template <class U>
  explicit Buffer(Buffer<U>&& other) noexcept
      : data_(reinterpret_cast<T*>(std::exchange(other.data_, nullptr))),
        size_(std::exchange(other.size_, 0)) {
    static_assert(sizeof(T) == sizeof(U));
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) pool::release(data_, static_cast<size_t>(size_) * sizeof(T));
  }

  T* data() & { return data_; }
  const T* data() const& { return data_; }
  const T* data() const&& = delete;
  int64_t size() const { return size_; }
  T* begin() & { return data_; }
  T* end() & { return data_ + size_; }
  const T* begin() const& { return data_; }
  const T* end() const& { return data_ + size_; }
  const T* begin() const&& = delete;
  const T* end() const&& = delete;
  T& operator[](int64_t i) & { return data_[i]; }
  const T& operator[](int64_t i) const& { return data_[i]; }
  T operator[](int64_t i) const&& { return data_[i]; }

 private:
  // Saturates, because a product that wraps around would ask for a small block.
  static size_t bytes(int64_t size) {
    const auto count = static_cast<size_t>(size);
    return count <= pool::kMaxBytes / sizeof(T) ? count * sizeof(T) : pool::kMaxBytes + 1;
  }

  template <class U>
  friend class Buffer;

  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace quantrain
