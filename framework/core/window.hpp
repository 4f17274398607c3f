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
  Size2d dilation = 1;  ///< from one tap of the kernel to the next

  /// What the kernel spans, from its first tap to its last.
  Size2d extent() const {
    return {(kernel.h - 1) * dilation.h + 1, (kernel.w - 1) * dilation.w + 1};
  }
  /// Whether the kernel is not larger than the padded image.
  bool fits(const Size2d& image) const {
    const Size2d span = extent();
    return span.h <= image.h + 2 * padding.h && span.w <= image.w + 2 * padding.w;
  }

  friend bool operator==(const Window2d&, const Window2d&) = default;
};

/// The same over a signal of some length.
struct Window1d {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  /// That of a signal as an image of one row.
  Window2d in_row() const { return {{1, kernel}, {1, stride}, {0, padding}, {1, dilation}}; }
  bool fits(int64_t length) const { return in_row().fits({1, length}); }

  friend bool operator==(const Window1d&, const Window1d&) = default;
};

/// Throws: ShapeError naming `where` unless kernel, stride and dilation are at least 1, padding at
/// least 0, and all, and what the kernel spans, below 2^31: extents computed from larger ones could
/// overflow.
void validate(const Window2d& window, std::string_view where);
void validate(const Window1d& window, std::string_view where);
/// Prints "kernel [3, 3], stride [1, 1], padding [0, 0]", and the dilation where it is not 1.
std::ostream& operator<<(std::ostream& stream, const Window2d& window);
/// Prints "kernel 3, stride 1, padding 0", and the dilation where it is not 1.
std::ostream& operator<<(std::ostream& stream, const Window1d& window);

}  // namespace quantrain
