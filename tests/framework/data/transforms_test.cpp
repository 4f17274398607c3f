#include "framework/data/transforms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/loader.hpp"
#include "tests/catch.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

/// 1, 2, 3, ...
std::vector<uint8_t> counted(int64_t n) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

/// Applies f to a sample of this shape with the values 1, 2, 3, ..., once as bytes and once as
/// floats. Both must give the same result.
template <class F>
std::vector<uint8_t> after(const Shape& shape, const F& f) {
  std::vector<uint8_t> bytes = counted(shape.elements());
  std::vector<float> floats(bytes.begin(), bytes.end());
  f(SampleView{.pixels = bytes, .shape = shape});
  f(SampleView{.shape = shape, .floats = floats});
  for (size_t i = 0; i < bytes.size(); ++i) REQUIRE(floats[i] == static_cast<float>(bytes[i]));
  return bytes;
}

std::vector<uint8_t> transformed(const Transform& transform, const Shape& shape, uint64_t seed) {
  return after(shape, [&](const SampleView& sample) {
    Random random(seed);
    transform(sample, random);
  });
}

const Transform kAll[] = {random_shift(2),
                          random_flip(),
                          random_crop(0.5f),
                          cutout(2),
                          gaussian_noise(0.1f),
                          random_time_shift(2),
                          time_mask(2),
                          frequency_mask(2, 2)};

}  // namespace

TEST_CASE("a flip mirrors left and right", "[data][transforms]") {
  const auto flipped = [](const Shape& shape) { return after(shape, flip_image); };
  CHECK(flipped({2, 2, 2}) == std::vector<uint8_t>{3, 4, 1, 2, 7, 8, 5, 6});
  CHECK(flipped({1, 3, 1}) == std::vector<uint8_t>{3, 2, 1});
  CHECK(flipped({3, 1, 1}) == std::vector<uint8_t>{1, 2, 3});
  CHECK(transformed(random_flip(1.0f), {1, 3, 1}, 1) == std::vector<uint8_t>{3, 2, 1});
  CHECK(transformed(random_flip(0.0f), {1, 3, 1}, 1) == std::vector<uint8_t>{1, 2, 3});
  int count = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed)
    count += transformed(random_flip(0.25f), {1, 2, 1}, seed)[0] == 2 ? 1 : 0;
  CHECK(std::abs(count - 250) < 70);  // 5 standard deviations
}

TEST_CASE("a crop scales a part to the size of the image", "[data][transforms]") {
  const auto cropped = [](const Shape& shape, int64_t y, int64_t x, int64_t h, int64_t w) {
    return after(shape, [&](const SampleView& image) { crop_image(image, y, x, h, w); });
  };
  CHECK(cropped({2, 2, 1}, 0, 0, 2, 2) == std::vector<uint8_t>{1, 2, 3, 4});
  CHECK(cropped({2, 2, 1}, 1, 0, 1, 1) == std::vector<uint8_t>{3, 3, 3, 3});
  CHECK(cropped({1, 4, 2}, 0, 1, 1, 2) == std::vector<uint8_t>{3, 4, 3, 4, 5, 6, 5, 6});
  CHECK(cropped({3, 3, 1}, 1, 1, 2, 2) == std::vector<uint8_t>{5, 5, 6, 5, 5, 6, 8, 8, 9});
  // Random parts have at least 2 x 2 pixels. Some parts are the top left corner, and some are the
  // bottom right corner.
  bool reaches_first = false;
  bool reaches_last = false;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<uint8_t> image = transformed(random_crop(0.5f), {4, 4, 1}, seed);
    const int span = image.back() - image.front();  // 4 (rows - 1) + columns - 1
    CHECK(span / 4 >= 1);
    CHECK(span % 4 >= 1);
    reaches_first = reaches_first || (image.front() == 1 && image.back() == 6);
    reaches_last = reaches_last || (image.front() == 11 && image.back() == 16);
  }
  CHECK(reaches_first);
  CHECK(reaches_last);
  CHECK(transformed(random_crop(1.0f), {4, 4, 1}, 3) == counted(16));
}

TEST_CASE("a cutout covers one square, or the part of it that is inside the image",
          "[data][transforms]") {
  int least = 16;
  int most = 0;
  std::vector<int> covered(16);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const std::vector<uint8_t> image = transformed(cutout(2), {4, 4, 1}, seed);
    int zeros = 0;
    for (size_t i = 0; i < 16; ++i) {
      const bool is_covered = image[i] == 0;
      CHECK((is_covered || image[i] == i + 1));
      zeros += is_covered;
      covered[i] += is_covered;
    }
    least = std::min(least, zeros);
    most = std::max(most, zeros);
  }
  CHECK(least == 1);
  CHECK(most == 4);
  for (const int count : covered) CHECK(count > 0);
  CHECK(transformed(cutout(0), {4, 4, 1}, 1) == counted(16));
  CHECK(transformed(cutout(100), {4, 4, 1}, 1) == std::vector<uint8_t>(16, 0));
}

TEST_CASE("the sigma of noise is in real values, for bytes and for floats", "[data][transforms]") {
  constexpr size_t kValues = 20000;
  std::vector<uint8_t> bytes(kValues, 100);
  std::vector<float> floats(kValues, 10.0f);
  const Shape shape{static_cast<int64_t>(kValues)};
  Random random(1);
  gaussian_noise(0.5f)({.pixels = bytes, .shape = shape, .scale = 0.1f}, random);
  gaussian_noise(0.5f)({.shape = shape, .floats = floats}, random);
  const auto spread = [&](const auto& values, double centre, double step) {
    double sum = 0.0;
    double squares = 0.0;
    for (const auto value : values) {
      const double x = step * (static_cast<double>(value) - centre);
      sum += x;
      squares += x * x;
    }
    CHECK(std::abs(sum / kValues) < 5.0 * 0.5 / std::sqrt(kValues));
    CHECK(std::abs(std::sqrt(squares / kValues) - 0.5) < 5.0 * 0.5 / std::sqrt(2.0 * kValues));
  };
  spread(bytes, 100.0, 0.1);
  spread(floats, 10.0, 1.0);
  std::vector<uint8_t> ends{0, 255};
  gaussian_noise(1000.0f)({.pixels = ends, .shape = {2}}, random);
  for (const uint8_t end : ends) CHECK((end == 0 || end == 255));
  std::vector<uint8_t> same = counted(8);
  gaussian_noise(0.0f)({.pixels = same, .shape = {8}}, random);
  CHECK(same == counted(8));
}

TEST_CASE("a time shift moves whole steps of a signal or spectrogram", "[data][transforms]") {
  std::vector<int> seen(5);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<uint8_t> signal = transformed(random_time_shift(2), {4}, seed);
    const std::vector<uint8_t> rows = transformed(random_time_shift(2), {4, 3, 1}, seed);
    int later = -2;
    while (later < 2 && signal[static_cast<size_t>(std::max(later, 0))] != 1 + std::max(-later, 0))
      ++later;
    ++seen[static_cast<size_t>(later + 2)];
    for (int t = 0; t < 4; ++t) {
      const int from = t - later;
      const bool is_inside = from >= 0 && from < 4;
      CHECK(int{signal[static_cast<size_t>(t)]} == (is_inside ? from + 1 : 0));
      for (int f = 0; f < 3; ++f)
        CHECK(int{rows[static_cast<size_t>(3 * t + f)]} == (is_inside ? 3 * from + f + 1 : 0));
    }
  }
  for (const int count : seen) CHECK(count > 20);
}

TEST_CASE("masks cover stretches of time and bands of frequencies", "[data][transforms]") {
  const auto check_one = [](bool is_time) {
    const Transform mask = is_time ? time_mask(2) : frequency_mask(2);
    std::vector<int> lengths(3);
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const std::vector<uint8_t> image = transformed(mask, {4, 5, 2}, seed);
      const int64_t steps = is_time ? 4 : 5;
      std::vector<bool> covered(static_cast<size_t>(steps), true);
      for (int64_t i = 0; i < 40; ++i) {
        const auto at = static_cast<size_t>(is_time ? i / 10 : i / 2 % 5);
        const uint8_t value = image[static_cast<size_t>(i)];
        CHECK((value == 0 || value == i + 1));
        if (value != 0) covered[at] = false;
      }
      // Only whole rows or columns are masked.
      int64_t zeros = std::count(image.begin(), image.end(), uint8_t{0});
      const auto length = std::count(covered.begin(), covered.end(), true);
      CHECK(zeros == length * 40 / steps);
      const auto first = std::find(covered.begin(), covered.end(), true);
      CHECK(std::all_of(first, first + length, [](bool is) { return is; }));  // in one stretch
      ++lengths[static_cast<size_t>(length)];
    }
    for (const int count : lengths) CHECK(std::abs(count - 100) < 45);  // 5 standard deviations
  };
  check_one(true);
  check_one(false);
  CHECK(transformed(time_mask(0, 5), {4, 5, 1}, 1) == counted(20));
  CHECK(transformed(time_mask(3), {2}, 1).size() == 2);
}

TEST_CASE("cutouts and masks fill with the byte that represents 0 in the data set",
          "[data][transforms]") {
  const SampleArray ones =
      SampleArray::encoded({1, 4, 4, 1}, std::vector<float>(16, 1.0f), {-1.0f, 1.0f});
  for (const Transform& transform : {cutout(9), time_mask(4, 40), frequency_mask(4, 40)}) {
    for (const Batch& batch : DataLoader(TensorDataset(ones, Targets{}), {.augment = transform})) {
      for (int64_t i = 0; i < 16; ++i) CHECK(batch.input.data()[i] == 0.0f);
    }
  }
}

TEST_CASE("transforms depend only on seed, epoch and index, not on batches or threads",
          "[data][transforms]") {
  std::vector<uint8_t> bytes(60 * 64);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(1 + i % 255);
  const std::vector<float> floats(bytes.begin(), bytes.end());
  const SampleArray both[] = {SampleArray::bytes({60, 8, 8, 1}, bytes),
                              SampleArray::floats({60, 8, 8, 1}, floats)};
  const Transform every = in_order(std::vector<Transform>(std::begin(kAll), std::end(kAll)));
  for (const SampleArray& samples : both) {
    const auto run = [&](int64_t epoch, int64_t size, bool shuffle) {
      std::vector<std::vector<float>> by_index(60);
      DataLoader loader(TensorDataset(samples, Targets{}),
                        {.batch = size, .shuffle = shuffle, .seed = 3, .augment = every});
      const std::vector<int64_t> order = loader.epoch(epoch).order();
      size_t at = 0;
      for (const Batch& batch : loader) {
        for (int64_t i = 0; i < batch.size(); ++i) {
          const float* const from = batch.input.data() + 64 * i;
          by_index[static_cast<size_t>(order[at++])].assign(from, from + 64);
        }
      }
      return by_index;
    };
    const auto expected = run(2, 60, false);
    CHECK(run(1, 60, false) != expected);
    for (const int n : test::thread_counts({1, 2, 4})) {
      set_threads(n);
      CHECK(run(2, 7, true) == expected);
    }
    set_threads(0);
  }
}

TEST_CASE("transforms refuse invalid options and shapes", "[data][transforms]") {
  const float nan = std::nanf("");
  QUANTRAIN_CHECK_ERROR(random_flip(1.5f), DataError, "probability is 1.5, expected 0 to 1");
  QUANTRAIN_CHECK_ERROR(random_flip(nan), DataError, "probability is nan");
  QUANTRAIN_CHECK_ERROR(
      random_crop(0.0f), DataError, "least is 0, expected more than 0 and at most 1");
  QUANTRAIN_CHECK_ERROR(cutout(-1), DataError, "[cutout] pixels is -1, expected 0 to 4294967296");
  QUANTRAIN_CHECK_ERROR(gaussian_noise(-0.1f), DataError, "sigma is -0.1");
  QUANTRAIN_CHECK_ERROR(gaussian_noise(HUGE_VALF), DataError, "sigma is inf");
  QUANTRAIN_CHECK_ERROR(
      random_time_shift(std::numeric_limits<int64_t>::max()), DataError, "steps is 9223");
  QUANTRAIN_CHECK_ERROR(time_mask(-1), DataError, "[time_mask] most is -1");
  QUANTRAIN_CHECK_ERROR(frequency_mask(1, -2), DataError, "[frequency_mask] count is -2");
  QUANTRAIN_CHECK_ERROR(
      in_order({random_flip(), nullptr}), DataError, "one of the transforms is null");

  const auto on = [](const Transform& transform, const Shape& shape) {
    std::vector<uint8_t> bytes(6);
    Random random(1);
    transform({.pixels = bytes, .shape = shape}, random);
  };
  QUANTRAIN_CHECK_ERROR(
      on(random_flip(0.0f), {6}), DataError, "[random_flip] flips images [H, W, C], got [6]");
  QUANTRAIN_CHECK_ERROR(on(random_crop(), {6}), DataError, "crops images [H, W, C], got [6]");
  QUANTRAIN_CHECK_ERROR(on(cutout(1), {2, 3}), DataError, "covers images [H, W, C], got [2, 3]");
  QUANTRAIN_CHECK_ERROR(
      on(frequency_mask(1), {6}), DataError, "takes samples [T, F, ...], got [6]");
  QUANTRAIN_CHECK_ERROR(on(time_mask(1), {}), DataError, "takes samples [T, ...], got []");
  for (const Transform& transform : kAll)
    CHECK_THROWS_AS(on(transform, {3, 3, 1}), DataError);  // 6 bytes instead of 9
  std::vector<uint8_t> bytes(6);
  const auto crop = [&](int64_t y, int64_t x, int64_t h, int64_t w) {
    crop_image({.pixels = bytes, .shape = {2, 3, 1}}, y, x, h, w);
  };
  QUANTRAIN_CHECK_ERROR(
      crop(1, 0, 2, 1), DataError, "a part of 2 x 1 pixels at row 1, column 0 does not lie within");
  CHECK_THROWS_AS(crop(-1, 0, 1, 1), DataError);
  CHECK_THROWS_AS(crop(0, 0, 0, 1), DataError);
  CHECK_THROWS_AS(crop(0, 3, 1, 1), DataError);
  CHECK_THROWS_AS(crop(0, 1, 1, std::numeric_limits<int64_t>::max()), DataError);
}

}  // namespace quantrain
