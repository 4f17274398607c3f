#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "framework/distributed/communicator.hpp"

namespace quantrain {

/// What ranks send each other: values one after the other, in the byte order of the machine, which
/// all have. ByteReader reads them in the same order.
inline void append_bytes(Communicator::Bytes& to, const void* from, size_t n) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  to.insert(to.end(), bytes, bytes + n);
}
template <class T>
requires std::is_trivially_copyable_v<T>
void append_value(Communicator::Bytes& to, const T& value) {
  append_bytes(to, &value, sizeof value);
}
/// The length, then the text.
inline void append_text(Communicator::Bytes& to, std::string_view text) {
  append_value(to, uint64_t{text.size()});
  append_bytes(to, text.data(), text.size());
}

/// Reads what append_...() wrote.
/// Throws: DistributedError if fewer bytes are left than a call reads.
class ByteReader {
 public:
  /// The bytes must outlive the reader.
  explicit ByteReader(std::span<const uint8_t> bytes) : left_(bytes) {}

  bool at_end() const { return left_.empty(); }
  std::span<const uint8_t> bytes(uint64_t n) {
    if (n > left_.size())
      throw DistributedError(
          "ranks", "a rank sent too few bytes: ", left_.size(), " are left, expected ", n);
    const auto taken = left_.first(static_cast<size_t>(n));
    left_ = left_.subspan(static_cast<size_t>(n));
    return taken;
  }
  void copy(void* to, size_t n) {
    const std::span<const uint8_t> from = bytes(n);
    if (n > 0) std::memcpy(to, from.data(), n);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> T value() {
    T value;
    copy(&value, sizeof value);
    return value;
  }
  std::string text() {
    const std::span<const uint8_t> all = bytes(value<uint64_t>());
    return {all.begin(), all.end()};
  }

 private:
  std::span<const uint8_t> left_;
};

}  // namespace quantrain
