#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace quantrain::test {

/// Elements that end at a protected page. A kernel that reads or writes past them crashes the test,
/// even if it discards what it reads. If QUANTRAIN_TESTS_UNGUARDED is set, the page is not
/// protected. Emulators that also access masked-out elements need this.
template <class T>
class Guarded {
 public:
  explicit Guarded(const std::vector<T>& values) : size_(values.size()) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = size_ * sizeof(T);
    const size_t pages = (bytes + page - 1) / page * page;
    mapped_ = pages + page;
    void* const memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    first_ = static_cast<char*>(memory);
    const bool guards = std::getenv("QUANTRAIN_TESTS_UNGUARDED") == nullptr;
    if (guards && mprotect(first_ + pages, page, PROT_NONE) != 0) {
      munmap(first_, mapped_);
      throw std::bad_alloc();
    }
    data_ = reinterpret_cast<T*>(first_ + pages - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(first_, mapped_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::vector<T> values() const { return {data_, data_ + size_}; }

 private:
  size_t size_;
  size_t mapped_ = 0;
  char* first_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace quantrain::test
