#include "framework/data/stream.hpp"

#include <cmath>
#include <stdexcept>

#include "framework/core/error.hpp"
#include "framework/data/loader.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

/// Sample i of an epoch has the values i and epoch, the label i % 3 and the target 2 i.
std::function<SampleGenerator(int64_t)> counting_samples(int64_t n) {
  return [n](int64_t epoch) -> SampleGenerator {
    return [n, epoch, i = int64_t{0}]() mutable -> std::optional<StreamSample> {
      if (i == n) return std::nullopt;
      const auto value = static_cast<float>(i);
      StreamSample sample{
          {value, static_cast<float>(epoch)}, static_cast<int32_t>(i % 3), {2.0f * value}};
      ++i;
      return sample;
    };
  };
}

const StreamOptions kRows{.shape = {2}, .classes = 3, .target = Shape{1}};

/// The first value of each sample of an epoch.
std::vector<float> firsts(const DataLoader& loader) {
  std::vector<float> all;
  for (const Batch& batch : loader) {
    for (int64_t i = 0; i < batch.size(); ++i) {
      all.push_back(batch.input.data()[2 * i]);
      CHECK(batch.targets[0].data()[i] == 2.0f * batch.input.data()[2 * i]);
      CHECK(batch.input.data()[2 * i + 1] == static_cast<float>(loader.epoch()));
    }
  }
  return all;
}

void run_stream(const Stream& stream, const LoaderOptions& options = {.batch = 2}) {
  for (const Batch& batch : DataLoader(stream, options)) static_cast<void>(batch);
}

}  // namespace

TEST_CASE("a stream of unknown length ends with its generator", "[data][stream]") {
  DataLoader loader(Stream(counting_samples(7), kRows), {.batch = 3});
  CHECK_FALSE(loader.samples().has_value());
  CHECK(firsts(loader) == std::vector<float>{0, 1, 2, 3, 4, 5, 6});
  CHECK(firsts(loader.epoch(4)).size() == 7);
  CHECK(firsts(DataLoader(Stream(counting_samples(6), kRows), {.batch = 3})).size() == 6);
  CHECK(firsts(DataLoader(Stream(counting_samples(7), kRows), {.batch = 3, .drop_last = true}))
            .size() == 6);
  QUANTRAIN_CHECK_ERROR(
      loader.batches(), DataError, "the number of samples is known only at the end");
  QUANTRAIN_CHECK_ERROR(
      DataLoader(Stream(counting_samples(7), kRows), {.batch = 3, .merge_last = true}),
      DataError,
      "merge_last needs the number of samples");
  QUANTRAIN_CHECK_ERROR(loader.order(),
                        DataError,
                        "declare the number (a Stream takes it as StreamOptions::samples)");
}

TEST_CASE("a stream of declared length gives that many samples", "[data][stream]") {
  StreamOptions options = kRows;
  options.samples = 5;
  const DataLoader loader(Stream(counting_samples(100), options), {.batch = 2});
  CHECK(loader.batches() == 3);
  CHECK(loader.samples() == 5);
  CHECK(firsts(loader) == std::vector<float>{0, 1, 2, 3, 4});
  CHECK(firsts(DataLoader(Stream(counting_samples(5), options), {.batch = 2})).size() == 5);
}

TEST_CASE("the values of a stream become codes, and augmentation ignores the batch size",
          "[data][stream]") {
  StreamOptions options = kRows;
  options.range = {0.0f, 10.0f};
  const Transform noise = [](const SampleView& sample, Random& random) {
    sample.pixels[0] = static_cast<uint8_t>(random.below(256));
  };
  const auto codes = [&](int64_t batch_size) {
    std::vector<uint8_t> all;
    for (const Batch& batch :
         DataLoader(Stream(counting_samples(9), options), {.batch = batch_size, .augment = noise}))
      all.insert(all.end(), batch.bytes().begin(), batch.bytes().end());
    return all;
  };
  CHECK(codes(2) == codes(5));
  for (const Batch& batch : DataLoader(Stream(counting_samples(9), options))) {
    CHECK(int{batch.bytes()[4]} == 51);
    CHECK(batch.labels == std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2});
  }
}

TEST_CASE("a generator that throws or ends early causes a DataError", "[data][stream]") {
  StreamOptions options = kRows;
  const auto failing = [](int64_t) -> SampleGenerator {
    return [i = 0]() mutable -> std::optional<StreamSample> {
      if (++i == 4) throw std::runtime_error("the microphone is gone");
      return StreamSample{{0.0f, 0.0f}, 0, {0.0f}};
    };
  };
  DataLoader loader(Stream(failing, options), {.batch = 1});
  int batches = 0;
  const auto count = [&] {
    for (const Batch& batch : loader.epoch(2)) batches += batch.size() == 1;
  };
  QUANTRAIN_CHECK_ERROR(
      count(),
      DataError,
      "[stream] sample 3 of epoch 2: the generator threw: the microphone is gone");
  CHECK(batches == 3);
  const auto broken = [](int64_t) -> SampleGenerator { throw std::runtime_error("no such file"); };
  QUANTRAIN_CHECK_ERROR(run_stream(Stream(broken, options)),
                        DataError,
                        "sample 0 of epoch 0: start() threw: no such file");
  const auto odd = [](int64_t) -> SampleGenerator {
    return []() -> std::optional<StreamSample> { throw 1; };
  };
  QUANTRAIN_CHECK_ERROR(
      run_stream(Stream(odd, options)), DataError, "threw something that is not a std::exception");
  QUANTRAIN_CHECK_ERROR(run_stream(Stream(counting_samples(0), options)),
                        DataError,
                        "the generator gave no sample at all");
  options.samples = 5;
  QUANTRAIN_CHECK_ERROR(run_stream(Stream(counting_samples(3), options)),
                        DataError,
                        "sample 3 of epoch 0: the generator ended early: 5 samples were declared");
}

TEST_CASE("samples of a stream that are not as declared are refused", "[data][stream]") {
  const auto one = [](const StreamSample& sample, const StreamOptions& options) {
    run_stream(Stream([sample](int64_t) -> SampleGenerator { return [sample] { return sample; }; },
                      options));
  };
  const float nan = std::nanf("");
  StreamOptions options = kRows;
  QUANTRAIN_CHECK_ERROR(one({{1.0f}, 0, {0.0f}}, options),
                        DataError,
                        "sample 0 of epoch 0: 1 values do not fill shape [2]");
  QUANTRAIN_CHECK_ERROR(one({{1.0f, nan}, 0, {0.0f}}, options), DataError, "value nan at 1");
  QUANTRAIN_CHECK_ERROR(
      one({{1.0f, 1.0f}, 3, {0.0f}}, options), DataError, "label 3 is outside [0, 3)");
  QUANTRAIN_CHECK_ERROR(
      one({{1.0f, 1.0f}, -1, {0.0f}}, options), DataError, "label -1 is outside [0, 3)");
  QUANTRAIN_CHECK_ERROR(
      one({{1.0f, 1.0f}, 0, {}}, options), DataError, "0 values of the target do not fill");
  QUANTRAIN_CHECK_ERROR(one({{1.0f, 1.0f}, 0, {nan}}, options), DataError, "target nan at 0");
  options.range = {0.0f, 1.0f};
  QUANTRAIN_CHECK_ERROR(one({{1.0f, 3.0f}, 0, {0.0f}}, options),
                        DataError,
                        "value 3 at 1 is outside the range [0, 1]");
  options.outside = Outside::kRefuseMost;
  QUANTRAIN_CHECK_ERROR(one({{2.0f, 3.0f}, 0, {0.0f}}, options),
                        DataError,
                        "4 of 4 values lie outside of [0, 1], what the codes of the samples mean");
  options.outside = Outside::kSaturate;
  options.features = {{0.0f, 0.0f}, {1.0f, 1e-3f}};
  QUANTRAIN_CHECK_ERROR(one({{1.0f, 3e38f}, 0, {0.0f}}, options),
                        DataError,
                        "sample 0 of epoch 0: value 3e+38 at 1 is inf after the feature's offset");
  QUANTRAIN_CHECK_ERROR(
      run_stream(Stream(counting_samples(3), kRows), {.batch = int64_t{1} << 40}),
      DataError,
      "batch is 1099511627776, expected at most 16777216 for a source whose number of samples");

  QUANTRAIN_CHECK_ERROR(run_stream(Stream(counting_samples(3), kRows), {.shuffle = true}),
                        DataError,
                        "a stream has one order and cannot be shuffled");
  QUANTRAIN_CHECK_ERROR(run_stream(Stream(counting_samples(3), kRows), {.mixup = 0.2}),
                        DataError,
                        ": leave out mixup, or collect the samples in a TensorDataset");
  QUANTRAIN_CHECK_ERROR(Stream(nullptr, kRows), DataError, "there is no start()");
  QUANTRAIN_CHECK_ERROR(Stream(counting_samples(1), {}), DataError, "samples of shape []");
  QUANTRAIN_CHECK_ERROR(
      Stream(counting_samples(1), {.shape = {2, 0}}), DataError, "samples of shape [2, 0]");
  QUANTRAIN_CHECK_ERROR(Stream(counting_samples(1), {.shape = {2}, .classes = -1}),
                        DataError,
                        "number of classes is -1");
  QUANTRAIN_CHECK_ERROR(Stream(counting_samples(1), {.shape = {2}, .target = Shape{0}}),
                        DataError,
                        "targets of shape [0]");
  QUANTRAIN_CHECK_ERROR(Stream(counting_samples(1), {.shape = {2}, .samples = 0}),
                        DataError,
                        "an epoch of 0 samples");
  QUANTRAIN_CHECK_ERROR(Stream(counting_samples(1), {.shape = {2}, .features = {{0.0f}, {1.0f}}}),
                        DataError,
                        "there are features, but no range: set StreamOptions::range");
  const auto empty = [](int64_t) -> SampleGenerator { return nullptr; };
  QUANTRAIN_CHECK_ERROR(run_stream(Stream(empty, kRows)), DataError, "there is no generator");
}

}  // namespace quantrain
