#include "framework/data/transforms.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// Wider than any image, and its double still fits.
constexpr int64_t kMostPixels = int64_t{1} << 32;

void check_filled(const char* where, const SampleView& sample) {
  const bool is_bytes = sample.floats.empty();
  const size_t count = is_bytes ? sample.pixels.size() : sample.floats.size();
  if (static_cast<int64_t>(count) == sample.shape.elements()) return;
  throw DataError(
      where, count, is_bytes ? " bytes" : " floats", " do not fill shape ", sample.shape);
}

/// f(values, zero) of the bytes or the floats, whichever the sample is.
template <class F>
void on_values(const SampleView& sample, const F& f) {
  if (sample.floats.empty()) {
    f(sample.pixels, sample.zero);
  } else {
    f(sample.floats, 0.0f);
  }
}

template <class T>
void shift(std::span<T> values, const Shape& shape, T zero, int64_t dy, int64_t dx) {
  const int64_t height = shape[0];
  const int64_t row = shape[1] * shape[2];  // values
  // Beyond its own size an image is gone.
  dy = std::clamp(dy, -height, height);
  const int64_t right = std::clamp(dx, -shape[1], shape[1]) * shape[2];
  const std::vector<T> old(values.begin(), values.end());
  std::fill(values.begin(), values.end(), zero);
  for (int64_t y = std::max<int64_t>(dy, 0); y < std::min(height, height + dy); ++y) {
    const T* const from = old.data() + (y - dy) * row + std::max<int64_t>(-right, 0);
    std::copy_n(from, row - std::abs(right), values.data() + y * row + std::max<int64_t>(right, 0));
  }
}

}  // namespace

Transform random_shift(int64_t pixels) {
  if (pixels < 0 || pixels > kMostPixels)
    throw DataError("random_shift", "a shift of up to ", pixels, " pixels");
  return [pixels](const SampleView& image, Random& random) {
    const int64_t dy = random.below(2 * pixels + 1) - pixels;
    const int64_t dx = random.below(2 * pixels + 1) - pixels;
    shift_image(image, dy, dx);
  };
}

void shift_image(const SampleView& image, int64_t dy, int64_t dx) {
  const Shape& shape = image.shape;
  if (shape.rank() != 3) throw DataError("shift_image", "shifts images [H, W, C], got ", shape);
  check_filled("shift_image", image);
  on_values(image, [&](auto values, auto zero) { shift(values, shape, zero, dy, dx); });
}

}  // namespace quantrain
