#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/core/random.hpp"
#include "framework/core/shape.hpp"

// Augmentation: what makes a sample a little different in every epoch. What is moved or covered
// becomes the real value 0. With features (docs/quantization.md (20)), values are what the network
// sees.
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

/// One after the other.   Throws: DataError if one of them is null.
Transform in_order(std::vector<Transform> transforms);

// Of images [H, W, C]. They throw, when they run, DataError unless the sample is one, and has as
// many values.

/// Moves the image by up to `pixels` in each direction, each of the (2 pixels + 1)^2 shifts as
/// likely as any other: a crop of the image with a border of that many zeros.
/// Throws: DataError if pixels is negative or above 2^32.
Transform random_shift(int64_t pixels);
/// Moves the image down by dy and right by dx pixels (up and left where negative).
void shift_image(const SampleView& image, int64_t dy, int64_t dx);

/// Mirrors left and right, with this probability.   Throws: DataError unless it is in [0, 1].
Transform random_flip(float probability = 0.5f);
/// Mirrors left and right.
void flip_image(const SampleView& image);

/// Cuts a part out, of height and width in [least, 1] of the image's and anywhere in it, and scales
/// it back to the image's size (nearest pixel).
/// Throws: DataError unless least is in (0, 1].
Transform random_crop(float least = 0.8f);
/// Scales the part [top, top + height) x [left, left + width) to the size of the image: pixel y
/// comes from top + floor(y * height / H).
/// Throws: DataError also unless the part has pixels, and lies within the image.
void crop_image(const SampleView& image, int64_t top, int64_t left, int64_t height, int64_t width);

/// Covers a square of `pixels` whose centre is any pixel of the image, so that it may stick out.
/// Throws: DataError if pixels is negative or above 2^32.
/// Source: DeVries and Taylor 2017, "Improved Regularization of Convolutional Neural Networks with
/// Cutout"
Transform cutout(int64_t pixels);

// Of samples of any shape.

/// Adds noise of the normal distribution to every value: sigma is in real values. Codes take the
/// nearest, at most the ends of their range.
/// Throws: DataError unless sigma is finite and not negative.
Transform gaussian_noise(float sigma);

// Of signals [T, ...] and spectrograms [T, F, ...], whose first axis is time. They throw, when they
// run, DataError unless the sample has these axes, and as many values.

/// Moves the signal by up to `steps` in time, either way.
/// Throws: DataError if steps is negative or above 2^32.
Transform random_time_shift(int64_t steps);
/// Covers `count` stretches of time, or bands of frequencies, each of 0 to `most` steps and
/// anywhere in the sample.
/// Throws: DataError if most or count is negative or above 2^32.
/// Source: Park et al. 2019, "SpecAugment", sections 2.2 and 2.3
Transform time_mask(int64_t most, int64_t count = 1);
Transform frequency_mask(int64_t most, int64_t count = 1);

}  // namespace quantrain
