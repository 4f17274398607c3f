#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/system.hpp"

namespace quantrain::test {

/// Elements that end at a protected page. A kernel that reads or writes past them crashes the test,
/// even if it discards what it reads. If QUANTRAIN_TESTS_UNGUARDED is set, the page is not
/// protected. Emulators that also access masked-out elements need this.
template <class T>
class Guarded {
 public:
  explicit Guarded(const std::vector<T>& values) : size_(values.size()) {
    const size_t bytes = size_ * sizeof(T);
    memory_ = guarded_memory(bytes, std::getenv("QUANTRAIN_TESTS_UNGUARDED") == nullptr);
    data_ = reinterpret_cast<T*>(memory_.first + memory_.bytes - bytes);
    std::copy(values.begin(), values.end(), data_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { release(memory_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::vector<T> values() const { return {data_, data_ + size_}; }

 private:
  size_t size_;
  GuardedMemory memory_;
  T* data_ = nullptr;
};

}  // namespace quantrain::test
