#include "framework/data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/compiles.hpp"
#include "tests/memory_taken.hpp"
#include "tests/system.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

// Every byte of image i is i + 1, and its label is i % 7.
Dataset numbered(int64_t n) {
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    pixels.insert(pixels.end(), 16, static_cast<uint8_t>(i + 1));
    labels.push_back(static_cast<int32_t>(i % 7));
  }
  return {{n, 4, 4, 1}, std::move(pixels), std::move(labels), 7};
}

struct ImageEpoch {
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  std::vector<int64_t> sizes;
  friend bool operator==(const ImageEpoch&, const ImageEpoch&) = default;
};

ImageEpoch run_images(const DataLoader& loader) {
  ImageEpoch epoch;
  for (const Batch& batch : loader) {
    epoch.bytes.insert(epoch.bytes.end(), batch.bytes().begin(), batch.bytes().end());
    epoch.labels.insert(epoch.labels.end(), batch.labels.begin(), batch.labels.end());
    epoch.sizes.push_back(batch.size());
    REQUIRE(batch.input.shape() == Shape{batch.size(), 4, 4, 1});
    for (size_t i = 0; i < batch.bytes().size(); ++i) {
      REQUIRE(batch.input.data()[i] == static_cast<float>(batch.bytes()[i]) / 255.0f);
    }
  }
  return epoch;
}

}  // namespace

TEST_CASE("an epoch visits every image once, in order", "[data][loader]") {
  const DataLoader loader(numbered(10), {.batch = 4});
  CHECK(loader.batches() == 3);
  const ImageEpoch epoch = run_images(loader);
  CHECK(epoch.sizes == std::vector<int64_t>{4, 4, 2});
  CHECK(epoch.labels == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 0, 1, 2});
  CHECK(epoch.bytes[9 * 16] == 10);
}

TEST_CASE("the caller may move from a batch", "[data][loader]") {
  const DataLoader loader(numbered(10), {.batch = 4});
  const ImageEpoch expected = run_images(loader);
  ImageEpoch epoch;
  for (Batch& batch : loader) {
    const Tensor images = std::move(batch.input);
    REQUIRE(images.shape() == Shape{batch.size(), 4, 4, 1});
    epoch.sizes.push_back(batch.size());
    const Buffer<uint8_t>& bytes = images.source_codes()->bytes;
    epoch.bytes.insert(epoch.bytes.end(), bytes.begin(), bytes.end());
    const std::vector<int32_t> labels = std::move(batch.labels);
    epoch.labels.insert(epoch.labels.end(), labels.begin(), labels.end());
  }
  CHECK(epoch == expected);
}

TEST_CASE("an incomplete last batch can be left out", "[data][loader]") {
  const DataLoader loader(numbered(10), {.batch = 4, .drop_last = true});
  CHECK(loader.batches() == 2);
  CHECK(run_images(loader).sizes == std::vector<int64_t>{4, 4});
  CHECK(run_images(DataLoader(numbered(8), {.batch = 4})).sizes == std::vector<int64_t>{4, 4});
  CHECK(run_images(DataLoader(numbered(3), {.batch = 400})).sizes == std::vector<int64_t>{3});
}

TEST_CASE("an incomplete last batch can join the batch before it", "[data][loader]") {
  const auto sizes = [](int64_t samples, int64_t batch) {
    const DataLoader loader(numbered(samples), {.batch = batch, .merge_last = true});
    const std::vector<int64_t> found = run_images(loader).sizes;
    CHECK(loader.batches() == static_cast<int64_t>(found.size()));
    return found;
  };
  CHECK(sizes(9, 4) == std::vector<int64_t>{4, 5});
  CHECK(sizes(11, 4) == std::vector<int64_t>{4, 7});
  CHECK(sizes(8, 4) == std::vector<int64_t>{4, 4});
  CHECK(sizes(5, 4) == std::vector<int64_t>{5});
  CHECK(sizes(3, 4) == std::vector<int64_t>{3});
  CHECK(sizes(3, std::numeric_limits<int64_t>::max()) == std::vector<int64_t>{3});
  const ImageEpoch merged = run_images(DataLoader(numbered(9), {.batch = 4, .merge_last = true}));
  CHECK(merged.bytes == run_images(DataLoader(numbered(9), {.batch = 4})).bytes);
}

TEST_CASE("a shuffled epoch visits every image once, with its own label", "[data][loader]") {
  const ImageEpoch epoch = run_images(DataLoader(numbered(100), {.batch = 8, .shuffle = true}));
  std::set<int> seen;
  for (size_t i = 0; i < epoch.labels.size(); ++i) {
    const int number = epoch.bytes[16 * i] - 1;
    seen.insert(number);
    CHECK(epoch.labels[i] == number % 7);
  }
  CHECK(seen.size() == 100);
  CHECK_FALSE(std::is_sorted(epoch.labels.begin(), epoch.labels.end()));
}

TEST_CASE("the order depends only on seed and epoch", "[data][loader]") {
  DataLoader loader(numbered(100), {.batch = 8, .shuffle = true, .seed = 3});
  const std::vector<int64_t> zero = loader.order();
  CHECK(loader.epoch(1).order() != zero);
  CHECK(loader.epoch(0).order() == zero);
  CHECK(DataLoader(numbered(100), {.batch = 9, .shuffle = true, .seed = 3}).order() == zero);
  CHECK(DataLoader(numbered(100), {.batch = 8, .shuffle = true, .seed = 4}).order() != zero);
  // This order is pinned, because another order would change every training run.
  const DataLoader small(numbered(8), {.shuffle = true, .seed = 1});
  CHECK(small.order() == std::vector<int64_t>{4, 7, 1, 3, 5, 2, 0, 6});
}

TEST_CASE(
    "an epoch is the same after a different or an unfinished epoch, with any number of threads",
    "[data][loader]") {
  DataLoader loader(numbered(50),
                    {.batch = 7, .shuffle = true, .seed = 5, .augment = random_shift(2)});
  const ImageEpoch expected = run_images(loader.epoch(3));
  CHECK(run_images(loader.epoch(2)).bytes != expected.bytes);
  for (const Batch& batch : loader.epoch(3)) {
    if (batch.size() == 7) break;
  }
  CHECK(run_images(loader.epoch(3)) == expected);
  for (const int n : test::thread_counts({1, 2, 4})) {
    set_threads(n);
    CHECK(run_images(loader.epoch(3)) == expected);
  }
  set_threads(0);
}

TEST_CASE("the augmentation of an image does not depend on its place in the epoch",
          "[data][loader]") {
  const LoaderOptions in_order{.batch = 50, .seed = 5, .augment = random_shift(2)};
  LoaderOptions shuffled = in_order;
  shuffled.batch = 3;
  shuffled.shuffle = true;
  const DataLoader loader(numbered(50), shuffled);
  const std::vector<int64_t> order = loader.order();
  const ImageEpoch a = run_images(DataLoader(numbered(50), in_order));
  const ImageEpoch b = run_images(loader);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto index = static_cast<size_t>(order[i]);
    CHECK(std::equal(&b.bytes[16 * i], &b.bytes[16 * i] + 16, &a.bytes[16 * index]));
  }
}

TEST_CASE("a loop that ends early stops the thread of its loader", "[data][loader]") {
  const DataLoader loader(numbered(100), {.batch = 1});
  for (int i = 0; i < 50; ++i) {
    for (const Batch& batch : loader) {
      if (batch.labels[0] == i % 7) break;
    }
    const DataLoader::Iterator unused = loader.begin();
  }
  const auto leave = [&] {
    for (const Batch& batch : loader) throw std::runtime_error(std::to_string(batch.size()));
  };
  CHECK_THROWS_AS(leave(), std::runtime_error);
}

TEST_CASE("an exception from a transform arrives after the preceding batches", "[data][loader]") {
  const Transform fail_at_six = [](const ImageBytes& image, Random&) {
    if (image.pixels[0] == 6) throw DataError("transform", "does not like image 5");
  };
  const DataLoader loader(numbered(10), {.batch = 2, .augment = fail_at_six});
  int batches = 0;
  const auto count = [&] {
    for (const Batch& batch : loader) batches += batch.size() == 2;
  };
  QUANTRAIN_CHECK_ERROR(count(), DataError, "does not like image 5");
  CHECK(batches == 2);
  QUANTRAIN_CHECK_ERROR(run_images(DataLoader(numbered(10), {.batch = 10, .augment = fail_at_six})),
                        DataError,
                        "does not like");
}

TEST_CASE("the next batch is prepared in another thread while one is used", "[data][loader]") {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread::id> threads;  // one entry for each prepared image
  const Transform note_thread = [&](const ImageBytes&, Random&) {
    const std::lock_guard lock(mutex);
    threads.push_back(std::this_thread::get_id());
    changed.notify_all();
  };
  const DataLoader loader(numbered(6), {.batch = 2, .augment = note_thread});
  const DataLoader::Iterator first = loader.begin();
  std::unique_lock lock(mutex);
  // The limit is long, so that the wait fails only if four images are never prepared.
  CHECK(changed.wait_for(lock, std::chrono::minutes(1), [&] { return threads.size() >= 4; }));
  for (const std::thread::id& thread : threads) {
    CHECK(thread == threads[0]);
    CHECK(thread != std::this_thread::get_id());
  }
}

TEST_CASE("an iterator can be moved and can outlive its loader", "[data][loader]") {
  auto loader = std::make_unique<DataLoader>(numbered(6), LoaderOptions{.batch = 2});
  DataLoader::Iterator first = loader->begin();
  loader.reset();
  DataLoader::Iterator it = std::move(first);
  int64_t images = 0;
  for (; it != std::default_sentinel; ++it) images += it->size();
  CHECK(images == 6);
}

TEST_CASE("a batch does not change when the next one is taken", "[data][loader]") {
  const DataLoader loader(numbered(6), {.batch = 2});
  std::vector<Batch> kept;
  for (const Batch& batch : loader) kept.push_back(batch);
  for (size_t b = 0; b < 3; ++b)
    CHECK(kept[b].input.data()[0] == static_cast<float>(2 * b + 1) / 255.0f);
}

TEST_CASE("a batch takes the memory of its bytes, and of its floats after they were read",
          "[data][loader]") {
  constexpr int64_t kPixels = 64 * 64 * 64;
  const Dataset dataset({1, 64, 64, 64}, std::vector<uint8_t>(kPixels), {0}, 1);
  const auto taken = [before = pool::counters()] {
    const pool::Counters now = pool::counters();
    return std::pair(now.allocations - before.allocations, now.bytes_in_use - before.bytes_in_use);
  };
  const Batch batch = dataset.batch(0, 1);
  const auto unread = taken();
  batch.input.data();
  const auto read = taken();
  const Buffer<uint8_t> bytes(kPixels);
  const auto with_bytes = taken();
  const Buffer<float> floats(kPixels);
  const auto with_floats = taken();
  CHECK(unread == std::pair(with_bytes.first - read.first, with_bytes.second - read.second));
  CHECK(read == std::pair(with_floats.first - read.first, with_floats.second - read.second));
}

TEST_CASE("invalid options of a loader are rejected", "[data][loader]") {
  QUANTRAIN_CHECK_ERROR(
      DataLoader(numbered(3), {.batch = 0}), DataError, "batch is 0, expected at least 1");
  QUANTRAIN_CHECK_ERROR(DataLoader(numbered(3), {.batch = -5}), DataError, "batch is -5");
  QUANTRAIN_CHECK_ERROR(
      DataLoader(numbered(3), {.batch = 4, .drop_last = true}),
      DataError,
      "drop_last leaves nothing: 3 samples, batch 4; take a smaller batch, or leave out drop_last");
  QUANTRAIN_CHECK_ERROR(
      DataLoader(numbered(9), {.batch = 4, .drop_last = true, .merge_last = true}),
      DataError,
      "drop_last and merge_last are both set");
  QUANTRAIN_CHECK_ERROR(
      DataLoader(numbered(3)).epoch(-1), DataError, "epoch is -1, expected at least 0");
}

TEST_CASE("a shift moves an image and fills with 0", "[data][transforms]") {
  const Shape shape{2, 3, 2};
  const std::vector<uint8_t> image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto shifted = [&](int64_t dy, int64_t dx) {
    std::vector<uint8_t> pixels = image;
    shift_image({pixels, shape}, dy, dx);
    return pixels;
  };
  CHECK(shifted(0, 0) == image);
  std::vector<uint8_t> row(4);
  QUANTRAIN_CHECK_ERROR(
      shift_image({row, {4}}, 0, 1), DataError, "shifts images [H, W, C], got [4]");
  CHECK(shifted(1, 0) == std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6});
  CHECK(shifted(-1, 0) == std::vector<uint8_t>{7, 8, 9, 10, 11, 12, 0, 0, 0, 0, 0, 0});
  CHECK(shifted(0, 1) == std::vector<uint8_t>{0, 0, 1, 2, 3, 4, 0, 0, 7, 8, 9, 10});
  CHECK(shifted(0, -2) == std::vector<uint8_t>{5, 6, 0, 0, 0, 0, 11, 12, 0, 0, 0, 0});
  CHECK(shifted(1, -1) == std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 3, 4, 5, 6, 0, 0});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::pair<int64_t, int64_t> out_of_sight[] = {
      {2, 0}, {-2, 0}, {0, 3}, {0, -3}, {5, 5}, {-9, 9}, {kMost, -kMost}, {-kMost, kMost}};
  for (const auto& [dy, dx] : out_of_sight) {
    CHECK(shifted(dy, dx) == std::vector<uint8_t>(12, 0));
  }
}

TEST_CASE("a shift fills with the byte that represents 0 in the dataset", "[data][transforms]") {
  const std::vector<float> ones(16, 1.0f);
  const Dataset dataset = Dataset::from_floats({1, 4, 4, 1}, ones, {0}, 1, {-1.0f, 1.0f});
  const Transform down = [](const ImageBytes& image, Random&) { shift_image(image, 1, 0); };
  const DataLoader loader(dataset, {.batch = 1, .augment = down});
  for (const Batch& batch : loader) {
    for (int64_t i = 0; i < 4; ++i) CHECK(batch.input.data()[i] == 0.0f);
    CHECK(batch.input.data()[4] > 0.9f);
  }
}

TEST_CASE("a random shift reaches every place equally often", "[data][transforms]") {
  const Transform shift = random_shift(1);
  std::vector<int> counts(9);
  for (uint64_t index = 0; index < 9000; ++index) {
    std::vector<uint8_t> pixels{0, 0, 0, 0, 1, 0, 0, 0, 0};
    Random random(1, 2, index);
    shift({pixels, {3, 3, 1}}, random);
    ++counts[static_cast<size_t>(std::max_element(pixels.begin(), pixels.end()) - pixels.begin())];
  }
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);  // 5 standard deviations
  QUANTRAIN_CHECK_ERROR(random_shift(-1), DataError, "pixels is -1, expected 0 to ");
  QUANTRAIN_CHECK_ERROR(random_shift(std::numeric_limits<int64_t>::max()),
                        DataError,
                        "pixels is 9223372036854775807, expected");
}

TEST_CASE("a shift of too few bytes for the shape is refused", "[data][transforms]") {
  std::vector<uint8_t> pixels(8);
  QUANTRAIN_CHECK_ERROR(shift_image({pixels, {3, 3, 1}}, 1, 0),
                        DataError,
                        "[shift_image] 8 bytes do not fill shape [3, 3, 1]");
  QUANTRAIN_CHECK_ERROR(
      shift_image({pixels, {1, int64_t{1} << 62, 1}}, 1, 0), DataError, "8 bytes do not fill");
}

TEST_CASE("an iterator cannot be advanced past its end", "[data][loader]") {
  const DataLoader loader(numbered(3), {.batch = 3});
  DataLoader::Iterator last = loader.begin();
  ++last;
  REQUIRE(last == loader.end());
  const test::Child beyond = test::in_child([&]() -> std::string {
    ++last;
    return "no error";
  });
  CHECK(beyond.text ==
        "[loader] the iterator is at its end or was moved from: there is no next batch");
  DataLoader::Iterator first = loader.begin();
  const DataLoader::Iterator other = std::move(first);
  CHECK_FALSE(other == loader.end());
  QUANTRAIN_CHECK_ERROR(++first, DataError, "was moved from");  // NOLINT(bugprone-use-after-move)
}

// ThreadSanitizer ends a process that starts a thread after a fork.
#if !defined(QUANTRAIN_SANITIZE_THREAD)
TEST_CASE("in a forked process, an iterator reports that its thread is in the parent",
          "[data][loader]") {
  if (test::left_out_on_windows("it has no fork()")) return;
  const DataLoader loader(numbered(30), {.batch = 3});
  auto iterator = std::make_unique<DataLoader::Iterator>(loader.begin());
  const test::Child child = test::in_child(
      [&]() -> std::string {
        std::string text;
        try {
          for (int i = 0; i < 3; ++i) ++*iterator;
        } catch (const DataError& error) {
          text = error.what();
        }
        *iterator = loader.begin();  // does not wait for the parent's thread
        text += ' ' + std::to_string((*iterator)->size());
        iterator.reset();
        for (const Batch& batch : loader) text += ' ' + std::to_string(batch.size());
        return text;
      },
      20);
  CHECK(child.text ==
        "[loader] the iterator's thread exists only in the parent process: begin a new pass after "
        "fork() 3 3 3 3 3 3 3 3 3 3 3");
  ++*iterator;
  CHECK((**iterator).size() == 3);
}
#endif

TEST_CASE("a loop over an epoch of a temporary loader keeps the loader alive",
          "[data][temporaries]") {
  DataLoader named(numbered(9), {.batch = 4, .shuffle = true});
  const ImageEpoch expected = run_images(named.epoch(1));
  ImageEpoch epoch;
  for (const Batch& batch : DataLoader{numbered(9), {.batch = 4, .shuffle = true}}.epoch(1)) {
    epoch.bytes.insert(epoch.bytes.end(), batch.bytes().begin(), batch.bytes().end());
    epoch.labels.insert(epoch.labels.end(), batch.labels.begin(), batch.labels.end());
    epoch.sizes.push_back(batch.size());
  }
  CHECK(epoch == expected);
}

TEST_CASE("an unnamed loader, batch or data set gives no reference into itself",
          "[data][temporaries]") {
  CHECK(std::is_same_v<decltype(DataLoader(numbered(1)).epoch(0)), DataLoader>);
  CHECK(std::is_same_v<decltype(DataLoader(numbered(1)).options()), LoaderOptions>);
  CHECK(std::is_same_v<decltype(*DataLoader(numbered(1)).begin()), Batch>);
  CHECK_FALSE(QUANTRAIN_COMPILES(DataLoader::Iterator, temporary()->labels));
  CHECK_FALSE(QUANTRAIN_COMPILES(Batch, temporary().bytes()));
  CHECK_FALSE(QUANTRAIN_COMPILES(Dataset, temporary().image(0)));
  CHECK(std::is_same_v<decltype(numbered(1).image_shape()), Shape>);
  CHECK(std::is_same_v<decltype(numbered(1).features()), InputFeatures>);
}

TEST_CASE("an epoch that is not shuffled needs no list of its samples", "[data][loader]") {
  /// Samples that are their own numbers.
  struct Numbers : BatchSource {
    explicit Numbers(int64_t count) : n(count) {}
    std::optional<int64_t> samples() const override { return n; }
    bool any_order() const override { return ordered; }
    Reader read(const quantrain::Pass&) const override {
      return [](std::span<const int64_t> indices) {
        Batch batch;
        batch.input = Tensor::full({std::ssize(indices), 1}, static_cast<float>(indices[0]));
        batch.labels.assign(indices.size(), 0);
        return batch;
      };
    }
    int64_t n;
    bool ordered = true;
  };
  for (const bool ordered : {false, true}) {
    for (const int64_t n : {int64_t{1'000'000'000}, int64_t{1} << 62}) {
      Numbers numbers(n);
      numbers.ordered = ordered;
      const DataLoader loader(numbers, {.batch = 8});
      int64_t seen = 0;
      const int64_t taken = test::resident_memory_taken([&] {
        for (const Batch& batch : loader) {
          CHECK(batch.input.floats()[0] == static_cast<float>(8 * seen));
          if (++seen == 3) break;
        }
      });
      CHECK(seen == 3);
      CHECK(taken < 100'000'000);
    }
  }
  const DataLoader shuffled(Numbers(int64_t{1} << 62), {.batch = 8, .shuffle = true});
  QUANTRAIN_CHECK_ERROR(shuffled.begin(), DataError, "an order that is listed has at most 2^40");
}

}  // namespace quantrain
