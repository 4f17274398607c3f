#include "framework/core/window.hpp"

#include <algorithm>
#include <limits>
#include <ostream>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

/// The fault of a window, or null if it has none.
const char* fault_of(const Window2d& window) {
  const auto& [kernel, stride, padding, dilation] = window;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::min(kernel.h, kernel.w) < 1) return "the kernel is below 1";
  if (std::min(stride.h, stride.w) < 1) return "the stride is below 1";
  if (std::min(padding.h, padding.w) < 0) return "the padding is negative";
  if (std::min(dilation.h, dilation.w) < 1) return "the dilation is below 1";
  if (std::max({kernel.h, kernel.w, stride.h, stride.w, padding.h, padding.w}) > kMost)
    return "kernel, stride or padding is 2^31 or more";
  if (std::max(dilation.h, dilation.w) > kMost) return "the dilation is 2^31 or more";
  if (std::max(window.extent().h, window.extent().w) > kMost)
    return "the dilated kernel spans 2^31 elements or more";
  return nullptr;
}

}  // namespace

void validate(const Window2d& window, std::string_view where) {
  if (const char* const fault = fault_of(window)) throw ShapeError(where, fault, ": ", window);
}

void validate(const Window1d& window, std::string_view where) {
  if (const char* const fault = fault_of(window.in_row()))
    throw ShapeError(where, fault, ": ", window);
}

std::ostream& operator<<(std::ostream& stream, const Size2d& size) {
  return stream << '[' << size.h << ", " << size.w << ']';
}

std::ostream& operator<<(std::ostream& stream, const Window2d& window) {
  stream << "kernel " << window.kernel << ", stride " << window.stride << ", padding "
         << window.padding;
  if (!(window.dilation == Size2d(1))) stream << ", dilation " << window.dilation;
  return stream;
}

std::ostream& operator<<(std::ostream& stream, const Window1d& window) {
  stream << "kernel " << window.kernel << ", stride " << window.stride << ", padding "
         << window.padding;
  if (window.dilation != 1) stream << ", dilation " << window.dilation;
  return stream;
}

}  // namespace quantrain
