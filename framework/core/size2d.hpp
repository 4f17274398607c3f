#pragma once

#include <cstdint>
#include <iosfwd>

namespace quantrain {

/// Height and width, in elements: of a kernel, a stride, a padding. One number means both: {.stride
/// = 2}, {.stride = {2, 1}}.
struct Size2d {
  int64_t h = 0;
  int64_t w = 0;

  Size2d() = default;
  Size2d(int64_t both) : h(both), w(both) {}
  Size2d(int64_t height, int64_t width) : h(height), w(width) {}

  friend bool operator==(const Size2d&, const Size2d&) = default;
};

/// Prints "[3, 1]".
std::ostream& operator<<(std::ostream& stream, const Size2d& size);

}  // namespace quantrain
