#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/core/random.hpp"
#include "framework/core/shape.hpp"

// Augmentation: small random changes of a sample in every epoch. Elements that a move leaves empty,
// or that a mask covers, get the real value 0. If the data have features (docs/quantization.md
// (20)), real values are the values z that the network sees, not the raw values.
namespace quantrain {

/// A view that lets a transform change a sample in place. The sample is an image, a row or a
/// spectrogram. One of the spans `pixels` and `floats` refers to it; the other is empty.
struct SampleView {
  std::span<uint8_t> pixels = {};  ///< codes of the sample
  Shape shape;                     ///< of the sample
  uint8_t zero = 0;                ///< the byte whose real value is 0
  float scale = 1.0f / 255.0f;     ///< real value = scale * (byte - zero)
  std::span<float> floats = {};    ///< used instead of pixels if the data have no codes
};
/// The old name of SampleView, from when samples were always bytes.
using ImageBytes = SampleView;

/// Changes a sample, perhaps in another thread. `random` depends only on seed, epoch and the
/// sample's index.
using Transform = std::function<void(const SampleView& sample, Random& random)>;

/// Applies the transforms one after the other.   Throws: DataError if one is null.
Transform in_order(std::vector<Transform> transforms);

// Transforms of images [H, W, C]. When they run, they throw DataError if the sample does not have
// three axes, or has too few or too many values.

/// Moves the image by up to `pixels` in each direction. All (2 * pixels + 1)^2 shifts have the same
/// probability. The result is that of padding the image with a border of zeros that is `pixels`
/// wide, then cropping it to its size at a random position.
/// Throws: DataError if pixels is negative or above 2^32.
Transform random_shift(int64_t pixels);
/// Moves the image down by dy and right by dx pixels (up and left if negative).
void shift_image(const SampleView& image, int64_t dy, int64_t dx);

/// Mirrors left and right, with this probability.
/// Throws: DataError unless probability is in [0, 1].
Transform random_flip(float probability = 0.5f);
/// Mirrors left and right.
void flip_image(const SampleView& image);

/// Cuts out a part at a random position and scales it back to the image's size (nearest pixel). The
/// height and width of the part are random, each from `least` to 1 times the image's.
/// Throws: DataError unless least is in (0, 1].
Transform random_crop(float least = 0.8f);
/// Scales the part [top, top + height) x [left, left + width) to the size of the image: row y comes
/// from row top + floor(y * height / H). Columns are scaled likewise.
/// Throws: DataError if the part is empty or not within the image.
void crop_image(const SampleView& image, int64_t top, int64_t left, int64_t height, int64_t width);

/// Covers a square with sides of `pixels`. The centre of the square is a random pixel of the image,
/// so the square may extend beyond the image.
/// Throws: DataError if pixels is negative or above 2^32.
/// Source: DeVries and Taylor 2017, "Improved Regularization of Convolutional Neural Networks with
/// Cutout"
Transform cutout(int64_t pixels);

// Transforms of samples of any shape.

/// Adds normally distributed noise to every value. sigma is in units of real values. Noisy codes
/// are rounded to whole numbers and clamped to [0, 255].
/// Throws: DataError unless sigma is finite and not negative. When the transform runs, it throws
/// DataError if the sample has too few or too many values.
Transform gaussian_noise(float sigma);

// Transforms of signals [T, ...] and spectrograms [T, F, ...], whose first axis is time. When they
// run, they throw DataError if the sample lacks these axes, or has too few or too many values.

/// Moves the signal forward or back in time by up to `steps`.
/// Throws: DataError if steps is negative or above 2^32.
Transform random_time_shift(int64_t steps);
/// Covers `count` time intervals or frequency bands. Each has 0 to `most` steps and a random
/// position.
/// Throws: DataError if most or count is negative or above 2^32.
/// Source: Park et al. 2019, "SpecAugment", sections 2.2 and 2.3
Transform time_mask(int64_t most, int64_t count = 1);
Transform frequency_mask(int64_t most, int64_t count = 1);

}  // namespace quantrain
