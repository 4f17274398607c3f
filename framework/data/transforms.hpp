#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "framework/core/random.hpp"
#include "framework/core/shape.hpp"

namespace quantrain {

/// A sample that is changed in place: an image, a row, a spectrogram. It is bytes or floats; of the
/// other there are none.
struct SampleView {
  std::span<uint8_t> pixels = {};  ///< codes [H, W, C], or one row
  Shape shape;                     ///< of the sample
  uint8_t zero = 0;                ///< the byte that means the real value 0
  float scale = 1.0f / 255.0f;     ///< the real value of a byte's step
  std::span<float> floats = {};    ///< in place of pixels, where the data have no codes
};
/// Its name while samples were bytes only.
using ImageBytes = SampleView;

/// The random numbers are the sample's own: seeded by seed, epoch and index. It may run in another
/// thread.
using Transform = std::function<void(const SampleView& sample, Random& random)>;

/// Moves the image by up to `pixels` in each direction, each of the (2 pixels + 1)^2 shifts as
/// likely as any other; what comes in is the real value 0.
/// Throws: DataError if pixels is negative or above 2^32.
Transform random_shift(int64_t pixels);

/// Moves the image down by dy and right by dx pixels (up and left where negative); what comes in is
/// the real value 0.
/// Throws: DataError unless the image is [H, W, C] and has as many values.
void shift_image(const SampleView& image, int64_t dy, int64_t dx);

}  // namespace quantrain
