#include "framework/data/transforms.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// Wider than any image, and its double still fits.
constexpr int64_t kMostPixels = int64_t{1} << 32;

}  // namespace

Transform random_shift(int64_t pixels) {
  if (pixels < 0 || pixels > kMostPixels)
    throw DataError("random_shift", "a shift of up to ", pixels, " pixels");
  return [pixels](const ImageBytes& image, Random& random) {
    const int64_t dy = random.below(2 * pixels + 1) - pixels;
    const int64_t dx = random.below(2 * pixels + 1) - pixels;
    shift_image(image, dy, dx);
  };
}

void shift_image(const ImageBytes& image, int64_t dy, int64_t dx) {
  const auto& [pixels, shape, zero] = image;
  if (shape.rank() != 3) throw DataError("shift_image", "shifts images [H, W, C], got ", shape);
  if (static_cast<int64_t>(pixels.size()) != shape.elements())
    throw DataError("shift_image", pixels.size(), " bytes do not fill shape ", shape);
  const int64_t height = shape[0];
  const int64_t row = shape[1] * shape[2];  // bytes
  // Beyond its own size an image is gone.
  dy = std::clamp(dy, -height, height);
  const int64_t right = std::clamp(dx, -shape[1], shape[1]) * shape[2];
  const std::vector<uint8_t> old(pixels.begin(), pixels.end());
  std::fill(pixels.begin(), pixels.end(), zero);
  for (int64_t y = std::max<int64_t>(dy, 0); y < std::min(height, height + dy); ++y) {
    const uint8_t* const from = old.data() + (y - dy) * row + std::max<int64_t>(-right, 0);
    std::copy_n(from, row - std::abs(right), pixels.data() + y * row + std::max<int64_t>(right, 0));
  }
}

}  // namespace quantrain
