#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace quantrain {

/// An immutable array whose copies share the elements. Another object may own the elements.
template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::vector<T> values) : size_(static_cast<int64_t>(values.size())) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    data_ = std::shared_ptr<const T>(owner, owner->data());
  }
  /// `data` keeps the elements alive.
  SharedArray(std::shared_ptr<const T> data, int64_t size) : data_(std::move(data)), size_(size) {}

  const T* data() const& { return data_.get(); }
  const T* data() const&& = delete;
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::vector<T> values() const { return {begin(), end()}; }  ///< a copy
  const T* begin() const& { return data(); }
  const T* end() const& { return data() + size_; }
  const T* begin() const&& = delete;
  const T* end() const&& = delete;
  const T& operator[](int64_t i) const& { return data()[i]; }
  T operator[](int64_t i) const&& { return data_.get()[i]; }

  /// Compares the elements.
  friend bool operator==(const SharedArray& a, const SharedArray& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::shared_ptr<const T> data_;
  int64_t size_ = 0;
};

}  // namespace quantrain
