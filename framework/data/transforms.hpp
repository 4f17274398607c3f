#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "framework/core/random.hpp"
#include "framework/core/shape.hpp"

namespace quantrain {

/// An image that is changed in place.
struct ImageBytes {
  std::span<uint8_t> pixels;  ///< [H, W, C], or one row
  Shape shape;                ///< of them
  uint8_t zero = 0;           ///< the byte that means the real value 0
};

/// The random numbers are the image's own: seeded by seed, epoch and index. It may run in another
/// thread.
using Transform = std::function<void(const ImageBytes& image, Random& random)>;

/// Moves the image by up to `pixels` in each direction, each of the (2 pixels + 1)^2 shifts as
/// likely as any other; what comes in is the real value 0.
/// Throws: DataError if pixels is negative or above 2^32.
Transform random_shift(int64_t pixels);

/// Moves the image down by dy and right by dx pixels (up and left where negative); what comes in is
/// the real value 0.
/// Throws: DataError unless the image is [H, W, C] and has as many bytes.
void shift_image(const ImageBytes& image, int64_t dy, int64_t dx);

}  // namespace quantrain
