#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "framework/core/random.hpp"
#include "framework/core/shape.hpp"

namespace quantrain {

/// Changes an image in place; pixels are the bytes of an image of shape [H, W, C]. The random
/// numbers are the image's own: seeded by seed, epoch and index. It may run in another thread.
using Transform =
    std::function<void(std::span<uint8_t> pixels, const Shape& shape, Random& random)>;

/// Moves the image by up to `pixels` in each direction, each of the (2 pixels + 1)^2 shifts as
/// likely as any other; what comes in is 0.
/// Throws: DataError if pixels is negative or above 2^32.
Transform random_shift(int64_t pixels);

/// Moves the image down by dy and right by dx pixels (up and left where negative); what comes in is
/// 0.
void shift_image(std::span<uint8_t> pixels, const Shape& shape, int64_t dy, int64_t dx);

}  // namespace quantrain
