#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quantrain {

/// FNV-1a in 64 bits. Tells contents apart and detects damage. A change of a single byte is always
/// detected. The hash does not protect against deliberate manipulation.
/// Source: Fowler, Noll and Vo, "FNV hash"
class Fnv1a {
 public:
  void add(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  void add(std::span<const uint8_t> bytes) {
    for (const uint8_t byte : bytes) add(byte);
  }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace quantrain
