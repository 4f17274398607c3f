#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

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

/// How a convolution or pooling moves over an image; zeros, or nothing, on each of two opposite
/// sides.
struct Window2d {
  Size2d kernel = 1;
  Size2d stride = 1;
  Size2d padding = 0;

  /// Whether the kernel is not larger than the padded image.
  bool fits(const Size2d& image) const {
    return kernel.h <= image.h + 2 * padding.h && kernel.w <= image.w + 2 * padding.w;
  }

  friend bool operator==(const Window2d&, const Window2d&) = default;
};

/// Throws: ShapeError naming `where` unless kernel and stride are at least 1, padding at least 0,
/// and all below 2^31: extents computed from larger ones could overflow.
void validate(const Window2d& window, std::string_view where);
/// Prints "kernel [3, 3], stride [1, 1], padding [0, 0]".
std::ostream& operator<<(std::ostream& stream, const Window2d& window);

}  // namespace quantrain
