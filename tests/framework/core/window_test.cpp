#include "framework/core/window.hpp"

#include <limits>
#include <sstream>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("a window fits if its kernel is at most as large as the padded image", "[core][window]") {
  const Window2d window{.kernel = {3, 5}, .padding = {0, 1}};
  CHECK(window.fits({3, 3}));
  CHECK_FALSE(window.fits({2, 3}));
  CHECK_FALSE(window.fits({3, 2}));
  std::ostringstream text;
  text << window;
  CHECK(text.str() == "kernel [3, 5], stride [1, 1], padding [0, 1]");
}

TEST_CASE("the extent of a dilated kernel includes the gaps between its taps", "[core][window]") {
  const Window2d window{.kernel = {3, 2}, .dilation = {2, 5}};
  CHECK(window.extent() == Size2d(5, 6));
  CHECK(window.fits({5, 6}));
  CHECK_FALSE(window.fits({4, 6}));
  CHECK_FALSE(window.fits({5, 5}));
  const Window1d signal{.kernel = 4, .stride = 2, .padding = 3, .dilation = 3};
  CHECK(signal.fits(4));
  CHECK_FALSE(signal.fits(3));
  std::ostringstream text;
  text << window << "; " << signal << "; " << Window1d{.kernel = 4};
  CHECK(text.str() ==
        "kernel [3, 2], stride [1, 1], padding [0, 0], dilation [2, 5]; "
        "kernel 4, stride 2, padding 3, dilation 3; kernel 4, stride 1, padding 0");
}

TEST_CASE("a window that makes no sense is refused", "[core][window]") {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  CHECK_NOTHROW(validate(Window2d{.kernel = kMost, .stride = kMost, .padding = kMost}, "conv"));
  struct Fault {
    Window2d window;
    const char* message;
  };
  const Fault faults[] = {
      {{.kernel = {0, 1}}, "[conv] the kernel is below 1: kernel [0, 1], stride [1, 1]"},
      {{.kernel = {1, -1}}, "[conv] the kernel is below 1: kernel [1, -1]"},
      {{.stride = {0, 1}}, "[conv] the stride is below 1"},
      {{.stride = {1, 0}}, "[conv] the stride is below 1"},
      {{.padding = {-1, 0}}, "[conv] the padding is negative"},
      {{.padding = {0, -1}}, "[conv] the padding is negative"},
      {{.kernel = {1, kMost + 1}}, "[conv] kernel, stride or padding is 2^31 or more"},
      {{.stride = {kMost + 1, 1}}, "[conv] kernel, stride or padding is 2^31 or more"},
      {{.padding = {1, kMost + 1}}, "[conv] kernel, stride or padding is 2^31 or more"},
      {{.dilation = {0, 1}}, "[conv] the dilation is below 1: kernel [1, 1], stride [1, 1]"},
      {{.dilation = {1, -3}}, "[conv] the dilation is below 1"},
      {{.dilation = {1, kMost + 1}}, "[conv] the dilation is 2^31 or more"},
      {{.kernel = {1 << 16, 1}, .dilation = {1 << 16, 1}},
       "[conv] the dilated kernel spans 2^31 elements or more"},
      {{.kernel = kMost, .dilation = int64_t{1} << 62}, "[conv] the dilation is 2^31 or more"},
  };
  for (const Fault& fault : faults)
    QUANTRAIN_CHECK_ERROR(validate(fault.window, "conv"), ShapeError, fault.message);
  CHECK_NOTHROW(validate(Window2d{.kernel = 1 << 15, .dilation = 1 << 15}, "conv"));
  QUANTRAIN_CHECK_ERROR(validate(Window1d{.kernel = 3, .dilation = 0}, "conv"),
                        ShapeError,
                        "[conv] the dilation is below 1: kernel 3, stride 1, padding 0");
}

}  // namespace quantrain
