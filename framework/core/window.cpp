#include "framework/core/window.hpp"

#include <algorithm>
#include <limits>
#include <ostream>

#include "framework/core/error.hpp"

namespace quantrain {

void validate(const Window2d& window, std::string_view where) {
  const auto& [kernel, stride, padding] = window;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto fail = [&](const char* text) { throw ShapeError(where, text, ": ", window); };
  if (std::min(kernel.h, kernel.w) < 1) fail("the kernel is below 1");
  if (std::min(stride.h, stride.w) < 1) fail("the stride is below 1");
  if (std::min(padding.h, padding.w) < 0) fail("the padding is negative");
  if (std::max({kernel.h, kernel.w, stride.h, stride.w, padding.h, padding.w}) > kMost)
    fail("kernel, stride or padding is 2^31 or more");
}

std::ostream& operator<<(std::ostream& stream, const Size2d& size) {
  return stream << '[' << size.h << ", " << size.w << ']';
}

std::ostream& operator<<(std::ostream& stream, const Window2d& window) {
  return stream << "kernel " << window.kernel << ", stride " << window.stride << ", padding "
                << window.padding;
}

}  // namespace quantrain
