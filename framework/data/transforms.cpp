#include "framework/data/transforms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// Larger than any sample. Twice this number still fits in int64_t.
constexpr int64_t kMost = int64_t{1} << 32;

void check_count(const char* where, const char* what, int64_t count) {
  if (count < 0 || count > kMost)
    throw DataError(where, what, " is ", count, ", expected 0 to ", kMost);
}

void check_filled(const char* where, const SampleView& sample) {
  const bool is_bytes = sample.floats.empty();
  const size_t count = is_bytes ? sample.pixels.size() : sample.floats.size();
  if (static_cast<int64_t>(count) == sample.shape.elements()) return;
  throw DataError(
      where, count, is_bytes ? " bytes" : " floats", " do not fill shape ", sample.shape);
}

void check_image(const char* where, const char* does, const SampleView& image) {
  if (image.shape.rank() != 3) throw DataError(where, does, " images [H, W, C], got ", image.shape);
  check_filled(where, image);
}

/// Calls f(values, zero) with the sample's bytes or floats, whichever it has, and the byte or float
/// that stands for 0.
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
  const int64_t row = shape[1] * shape[2];  // in values
  // A shift by the image's size or more moves everything out of the image.
  dy = std::clamp(dy, -height, height);
  const int64_t right = std::clamp(dx, -shape[1], shape[1]) * shape[2];
  const std::vector<T> old(values.begin(), values.end());
  std::fill(values.begin(), values.end(), zero);
  for (int64_t y = std::max<int64_t>(dy, 0); y < std::min(height, height + dy); ++y) {
    const T* const from = old.data() + (y - dy) * row + std::max<int64_t>(-right, 0);
    std::copy_n(from, row - std::abs(right), values.data() + y * row + std::max<int64_t>(right, 0));
  }
}

/// A rectangle of an image: rows [top, bottom), columns [left, right). cover() sets it to 0.
struct Box {
  int64_t top, bottom, left, right;
};
void cover(const SampleView& sample, int64_t columns, int64_t channels, const Box& box) {
  on_values(sample, [&](auto values, auto zero) {
    for (int64_t y = box.top; y < box.bottom; ++y) {
      std::fill_n(values.begin() + (y * columns + box.left) * channels,
                  (box.right - box.left) * channels,
                  zero);
    }
  });
}

/// A sample's axes as [rows, columns, rest]. With one axis, columns is 1.
struct Axes {
  int64_t rows, columns, rest;
};
Axes axes_of(const char* where, const SampleView& sample, int least_rank) {
  const Shape& shape = sample.shape;
  if (shape.rank() < least_rank) {
    throw DataError(
        where, "takes samples ", least_rank == 1 ? "[T, ...]" : "[T, F, ...]", ", got ", shape);
  }
  check_filled(where, sample);
  Axes axes{shape[0], shape.rank() > 1 ? shape[1] : 1, 1};
  for (int i = 2; i < shape.rank(); ++i) axes.rest *= shape[i];
  return axes;
}

/// A random interval [begin, end) within [0, n). Its length is 0 to min(most, n).
std::pair<int64_t, int64_t> stretch(int64_t n, int64_t most, Random& random) {
  const int64_t length = random.below(std::min(most, n) + 1);
  const int64_t begin = random.below(n - length + 1);
  return {begin, begin + length};
}

}  // namespace

Transform in_order(std::vector<Transform> transforms) {
  for (const Transform& transform : transforms) {
    if (!transform) throw DataError("in_order", "one of the transforms is null");
  }
  return [transforms = std::move(transforms)](const SampleView& sample, Random& random) {
    for (const Transform& transform : transforms) transform(sample, random);
  };
}

Transform random_shift(int64_t pixels) {
  if (pixels < 0 || pixels > kMost)
    throw DataError("random_shift", "pixels is ", pixels, ", expected 0 to ", kMost);
  return [pixels](const SampleView& image, Random& random) {
    const int64_t dy = random.below(2 * pixels + 1) - pixels;
    const int64_t dx = random.below(2 * pixels + 1) - pixels;
    shift_image(image, dy, dx);
  };
}

void shift_image(const SampleView& image, int64_t dy, int64_t dx) {
  check_image("shift_image", "shifts", image);
  on_values(image, [&](auto values, auto zero) { shift(values, image.shape, zero, dy, dx); });
}

Transform random_flip(float probability) {
  if (!(probability >= 0.0f && probability <= 1.0f))
    throw DataError("random_flip", "probability is ", probability, ", expected 0 to 1");
  return [probability](const SampleView& image, Random& random) {
    check_image("random_flip", "flips", image);
    if (random.uniform() < probability) flip_image(image);
  };
}

void flip_image(const SampleView& image) {
  check_image("flip_image", "flips", image);
  const int64_t width = image.shape[1];
  const int64_t channels = image.shape[2];
  on_values(image, [&](auto values, auto /*zero*/) {
    for (int64_t y = 0; y < image.shape[0]; ++y) {
      const auto pixel = [&](int64_t x) { return values.begin() + (y * width + x) * channels; };
      for (int64_t x = 0; x < width / 2; ++x)
        std::swap_ranges(pixel(x), pixel(x) + channels, pixel(width - 1 - x));
    }
  });
}

Transform random_crop(float least) {
  if (!(least > 0.0f && least <= 1.0f))
    throw DataError("random_crop", "least is ", least, ", expected more than 0 and at most 1");
  return [least](const SampleView& image, Random& random) {
    check_image("random_crop", "crops", image);
    // A random length of a side in whole pixels. All lengths have the same probability.
    const auto side = [&](int64_t whole) {
      const double exact = std::ceil(double{least} * static_cast<double>(whole));
      const int64_t smallest = std::clamp<int64_t>(static_cast<int64_t>(exact), 1, whole);
      return smallest + random.below(whole - smallest + 1);
    };
    if (image.shape.elements() == 0) return;
    const int64_t height = side(image.shape[0]);
    const int64_t width = side(image.shape[1]);
    const int64_t top = random.below(image.shape[0] - height + 1);
    const int64_t left = random.below(image.shape[1] - width + 1);
    crop_image(image, top, left, height, width);
  };
}

void crop_image(const SampleView& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  check_image("crop_image", "crops", image);
  const int64_t rows = image.shape[0];
  const int64_t columns = image.shape[1];
  const int64_t channels = image.shape[2];
  const bool lies_within = top >= 0 && left >= 0 && height >= 1 && width >= 1 && top < rows &&
                           left < columns && height <= rows - top && width <= columns - left;
  if (!lies_within) {
    throw DataError("crop_image",
                    "a part of ",
                    height,
                    " x ",
                    width,
                    " pixels at row ",
                    top,
                    ", column ",
                    left,
                    " does not lie within ",
                    image.shape);
  }
  on_values(image, [&](auto values, auto /*zero*/) {
    using T = typename decltype(values)::value_type;
    const std::vector<T> old(values.begin(), values.end());
    for (int64_t y = 0; y < rows; ++y) {
      const int64_t from_row = top + y * height / rows;
      for (int64_t x = 0; x < columns; ++x) {
        const int64_t from = from_row * columns + left + x * width / columns;
        std::copy_n(
            old.data() + from * channels, channels, values.data() + (y * columns + x) * channels);
      }
    }
  });
}

Transform cutout(int64_t pixels) {
  check_count("cutout", "pixels", pixels);
  return [pixels](const SampleView& image, Random& random) {
    check_image("cutout", "covers", image);
    if (image.shape.elements() == 0) return;
    const int64_t height = image.shape[0];
    const int64_t width = image.shape[1];
    const int64_t top = random.below(height) - pixels / 2;
    const int64_t left = random.below(width) - pixels / 2;
    cover(image,
          width,
          image.shape[2],
          {std::max<int64_t>(top, 0),
           std::min(top + pixels, height),
           std::max<int64_t>(left, 0),
           std::min(left + pixels, width)});
  };
}

Transform gaussian_noise(float sigma) {
  if (!(sigma >= 0.0f) || !std::isfinite(sigma))
    throw DataError(
        "gaussian_noise", "sigma is ", sigma, ", expected a finite number that is at least 0");
  return [sigma](const SampleView& sample, Random& random) {
    check_filled("gaussian_noise", sample);
    for (float& x : sample.floats) x += sigma * random.normal();
    for (uint8_t& code : sample.pixels) {
      const float noisy = static_cast<float>(code) + sigma / sample.scale * random.normal();
      code = static_cast<uint8_t>(std::clamp(noisy, 0.0f, 255.0f) + 0.5f);
    }
  };
}

Transform random_time_shift(int64_t steps) {
  check_count("random_time_shift", "steps", steps);
  return [steps](const SampleView& sample, Random& random) {
    const Axes axes = axes_of("random_time_shift", sample, 1);
    const int64_t later = random.below(2 * steps + 1) - steps;
    const Shape rows{axes.rows, axes.columns * axes.rest, 1};
    on_values(sample, [&](auto values, auto zero) { shift(values, rows, zero, later, 0); });
  };
}

Transform time_mask(int64_t most, int64_t count) {
  check_count("time_mask", "most", most);
  check_count("time_mask", "count", count);
  return [most, count](const SampleView& sample, Random& random) {
    const Axes axes = axes_of("time_mask", sample, 1);
    for (int64_t i = 0; i < count; ++i) {
      const auto [begin, end] = stretch(axes.rows, most, random);
      cover(sample, axes.columns, axes.rest, {begin, end, 0, axes.columns});
    }
  };
}

Transform frequency_mask(int64_t most, int64_t count) {
  check_count("frequency_mask", "most", most);
  check_count("frequency_mask", "count", count);
  return [most, count](const SampleView& sample, Random& random) {
    const Axes axes = axes_of("frequency_mask", sample, 2);
    for (int64_t i = 0; i < count; ++i) {
      const auto [begin, end] = stretch(axes.columns, most, random);
      cover(sample, axes.columns, axes.rest, {0, axes.rows, begin, end});
    }
  };
}

}  // namespace quantrain
