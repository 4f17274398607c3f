#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace quantrain {

/// Height and width in elements, for example of a kernel, a stride or a padding. One number sets
/// both, so {.stride = 2} means {.stride = {2, 2}}.
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

/// How a convolution or pooling moves over an image. `padding` elements are added on each side. A
/// convolution treats them as zeros, pooling ignores them.
struct Window2d {
  Size2d kernel = 1;
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d dilation = 1;  ///< distance between neighbouring taps

  /// Elements that the kernel spans, from its first tap to its last.
  Size2d extent() const {
    return {(kernel.h - 1) * dilation.h + 1, (kernel.w - 1) * dilation.w + 1};
  }
  /// Whether the padded image is at least as large as the kernel's extent.
  bool fits(const Size2d& image) const {
    const Size2d span = extent();
    return span.h <= image.h + 2 * padding.h && span.w <= image.w + 2 * padding.w;
  }

  friend bool operator==(const Window2d&, const Window2d&) = default;
};

/// The same for a one-dimensional signal.
struct Window1d {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  /// The same window over an image with one row.
  Window2d in_row() const { return {{1, kernel}, {1, stride}, {0, padding}, {1, dilation}}; }
  bool fits(int64_t length) const { return in_row().fits({1, length}); }

  friend bool operator==(const Window1d&, const Window1d&) = default;
};

/// Checks that kernel, stride and dilation are at least 1 and padding is at least 0. All four and
/// the extent of the kernel must also be below 2^31, because extents computed from larger numbers
/// could overflow.
/// Throws: ShapeError naming `where`.
void validate(const Window2d& window, std::string_view where);
void validate(const Window1d& window, std::string_view where);
/// Prints "kernel [3, 3], stride [1, 1], padding [0, 0]", and the dilation if it is not 1.
std::ostream& operator<<(std::ostream& stream, const Window2d& window);
/// Prints "kernel 3, stride 1, padding 0", and the dilation if it is not 1.
std::ostream& operator<<(std::ostream& stream, const Window1d& window);

}  // namespace quantrain
