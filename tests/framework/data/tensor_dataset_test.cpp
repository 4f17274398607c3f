#include "framework/data/tensor_dataset.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/loader.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::values;

std::vector<float> counting_floats(int64_t n, float first = 0.0f) {
  std::vector<float> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<int32_t> labels_of(int64_t n, int32_t classes) {
  std::vector<int32_t> all;
  for (int64_t i = 0; i < n; ++i) all.push_back(static_cast<int32_t>(i) % classes);
  return all;
}

// Row i is (i, i + 1000).
SampleArray numbered_rows(int64_t n) {
  std::vector<float> all;
  for (int64_t i = 0; i < n; ++i) {
    all.push_back(static_cast<float>(i));
    all.push_back(static_cast<float>(i + 1000));
  }
  return SampleArray::floats({n, 2}, std::move(all));
}

struct FloatEpoch {
  std::vector<float> inputs;
  std::vector<float> targets;
  std::vector<int32_t> labels;
  friend bool operator==(const FloatEpoch&, const FloatEpoch&) = default;
};

FloatEpoch run_floats(const DataLoader& loader) {
  FloatEpoch epoch;
  const auto append = [](std::vector<float>& all, const Tensor& tensor) {
    const std::vector<float> more = values(tensor);
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const Batch& batch : loader) {
    append(epoch.inputs, batch.input);
    for (const Tensor& target : batch.targets) append(epoch.targets, target);
    epoch.labels.insert(epoch.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return epoch;
}

}  // namespace

TEST_CASE("batches of a float dataset have unchanged values and no codes",
          "[data][tensor_dataset]") {
  const TensorDataset dataset(numbered_rows(5), Labels{labels_of(5, 3), 3});
  CHECK(dataset.size() == 5);
  CHECK(dataset.classes() == 3);
  CHECK(dataset.label(4) == 1);
  const Batch batch = dataset.batch(1, 3);
  CHECK(batch.size() == 2);
  CHECK(batch.input.shape() == Shape{2, 2});
  CHECK(values(batch.input) == std::vector<float>{1, 1001, 2, 1002});
  CHECK(batch.labels == std::vector<int32_t>{1, 2});
  CHECK(batch.targets.empty());
  QUANTRAIN_CHECK_ERROR(batch.bytes(), DataError, "the input has no codes");
}

TEST_CASE("encoded floats carry codes, range and features", "[data][tensor_dataset]") {
  const InputFeatures features{{0.0f, 1000.0f}, {2.0f, 4.0f}};
  const TensorDataset dataset(
      SampleArray::encoded(
          {2, 2}, std::vector<float>{0.0f, 1004.0f, 2.0f, 1000.0f}, {0.0f, 1.0f}, features),
      Labels{{0, 1}, 2});
  const Batch batch = dataset.batch(0, 2);
  CHECK(std::vector<uint8_t>(batch.bytes().begin(), batch.bytes().end()) ==
        std::vector<uint8_t>{0, 255, 255, 0});
  CHECK(*batch.input.source_codes()->features == features);
  CHECK(dataset.inputs()[0].saturated() == 0);
}

TEST_CASE("values outside of the range are refused, or saturate and are counted",
          "[data][tensor_dataset]") {
  const std::vector<float> raw{-1.0f, 0.5f, 3.0f, 1.0f};
  QUANTRAIN_CHECK_ERROR(SampleArray::encoded({4, 1}, raw, {0.0f, 1.0f}),
                        DataError,
                        "value -1 at 0 (sample 0) is outside the range [0, 1]");
  const SampleArray samples =
      SampleArray::encoded({4, 1}, raw, {0.0f, 1.0f}, {}, Outside::kSaturate);
  CHECK(samples.saturated() == 2);
  CHECK(int{samples.sample_bytes(0)[0]} == 0);
  CHECK(int{samples.sample_bytes(2)[0]} == 255);
  const std::vector<float> bad{0.0f, std::nanf("")};
  QUANTRAIN_CHECK_ERROR(SampleArray::encoded({1, 2}, bad, {0.0f, 1.0f}, {}, Outside::kSaturate),
                        DataError,
                        "value nan of sample 0, element 1");
}

TEST_CASE("targets are one or several tensors, or the input", "[data][tensor_dataset]") {
  const TensorDataset regression(numbered_rows(4),
                                 SampleArray::floats({4, 1}, counting_floats(4, 10.0f)));
  const Batch batch = regression.batch(2, 4);
  CHECK(batch.size() == 2);
  CHECK(batch.labels.empty());
  REQUIRE(batch.targets.size() == 1);
  CHECK(batch.targets[0].shape() == Shape{2, 1});
  CHECK(values(batch.targets[0]) == std::vector<float>{12, 13});
  QUANTRAIN_CHECK_ERROR(regression.classes(), DataError, "has no labels");

  const TensorDataset two(
      numbered_rows(4),
      std::vector<SampleArray>{SampleArray::floats({4}, counting_floats(4)),
                               SampleArray::floats({4, 3}, counting_floats(12))});
  CHECK(two.batch(1, 2).targets[0].shape() == Shape{1});
  CHECK(values(two.batch(1, 2).targets[1]) == std::vector<float>{3, 4, 5});

  const TensorDataset autoencoder(numbered_rows(4), SameAsInput{});
  const Batch same = autoencoder.batch(0, 4);
  CHECK(same.targets[0].same_as(same.input));
  CHECK(TensorDataset(numbered_rows(4), Targets{}).batch(0, 4).targets.empty());
}

TEST_CASE("a batch has the same samples of all inputs", "[data][tensor_dataset]") {
  const std::vector<SampleArray> inputs{SampleArray::bytes({3, 2}, {1, 2, 3, 4, 5, 6}),
                                        numbered_rows(3)};
  const DataLoader loader(TensorDataset(inputs, Labels{{0, 1, 0}, 2}),
                          {.batch = 2, .shuffle = true, .seed = 1});
  const std::vector<int64_t> order = loader.order();
  size_t at = 0;
  for (const Batch& batch : loader) {
    REQUIRE(batch.inputs().size() == 2);
    CHECK(batch.inputs()[0].same_as(batch.input));
    CHECK(batch.inputs()[1].same_as(batch.more_inputs[0]));
    for (int64_t i = 0; i < batch.size(); ++i) {
      const int64_t index = order[at++];
      CHECK(batch.bytes()[static_cast<size_t>(2 * i)] == 2 * index + 1);
      CHECK(batch.more_inputs[0].data()[2 * i] == static_cast<float>(index));
      CHECK(batch.labels[static_cast<size_t>(i)] == index % 2);
    }
  }
  CHECK(at == 3);
}

TEST_CASE("loading floats depends only on seed and epoch, not on the number of threads",
          "[data][tensor_dataset]") {
  const Transform noise = [](const SampleView& sample, Random& random) {
    for (float& x : sample.floats) x += random.normal();
  };
  DataLoader loader(
      TensorDataset(numbered_rows(50), SampleArray::floats({50, 1}, counting_floats(50))),
      {.batch = 7, .shuffle = true, .seed = 5, .augment = noise});
  const FloatEpoch expected = run_floats(loader.epoch(3));
  CHECK(run_floats(loader.epoch(2)).inputs != expected.inputs);
  for (const int n : test::thread_counts({1, 2, 4})) {
    set_threads(n);
    CHECK(run_floats(loader.epoch(3)) == expected);
  }
  set_threads(0);
  const std::vector<int64_t> order = loader.order();
  for (size_t i = 0; i < order.size(); ++i) {
    CHECK(expected.targets[i] == static_cast<float>(order[i]));
    CHECK(std::abs(expected.inputs[2 * i] - static_cast<float>(order[i])) < 6.0f);
  }
}

TEST_CASE("the targets of an autoencoder are its augmented inputs", "[data][tensor_dataset]") {
  const Transform add_half = [](const SampleView& sample, Random&) { sample.floats[0] += 0.5f; };
  const FloatEpoch epoch =
      run_floats(DataLoader(TensorDataset(numbered_rows(3), SameAsInput{}), {.augment = add_half}));
  CHECK(epoch.targets == epoch.inputs);
  CHECK(epoch.inputs[0] == 0.5f);
}

TEST_CASE("a part of a data set shares its values", "[data][tensor_dataset]") {
  const TensorDataset dataset(numbered_rows(6), Labels{labels_of(6, 3), 3});
  const TensorDataset part = dataset.subset(std::vector<int64_t>{5, 0, 3});
  CHECK(part.size() == 3);
  CHECK(part.labels() == std::vector<int32_t>{2, 0, 0});
  CHECK(values(part.batch(0, 2).input) == std::vector<float>{5, 1005, 0, 1000});
  const TensorDataset again = part.subset(std::vector<int64_t>{2}).first(1);
  CHECK(values(again.batch(0, 1).input) == std::vector<float>{3, 1003});
  CHECK(again.row(0) == 3);
  QUANTRAIN_CHECK_ERROR(
      part.subset(std::vector<int64_t>{3}), DataError, "sample 3 is outside [0, 3)");
  QUANTRAIN_CHECK_ERROR(part.subset({}), DataError, "a subset needs at least one sample");
  QUANTRAIN_CHECK_ERROR(part.first(4), DataError, "cannot take the first 4 of 3 samples");
  QUANTRAIN_CHECK_ERROR(part.batch(0, 4), DataError, "samples [0, 4) are not within [0, 3)");
}

TEST_CASE("a dataset uses values in the program's own memory without a copy",
          "[data][tensor_dataset]") {
  const auto memory = std::make_shared<const std::vector<float>>(counting_floats(6));
  const auto bytes = std::make_shared<const std::vector<uint8_t>>(6, uint8_t{7});
  {
    const TensorDataset dataset(
        std::vector<SampleArray>{SampleArray::floats({3, 2}, *memory, memory),
                                 SampleArray::bytes({3, 2}, *bytes, bytes)},
        Targets{});
    CHECK(memory.use_count() == 2);
    CHECK(dataset.inputs()[1].sample_bytes(1).data() == bytes->data() + 2);
    CHECK(values(dataset.batch(1, 2).input) == std::vector<float>{2, 3});
  }
  CHECK(memory.use_count() == 1);
}

TEST_CASE("inputs and targets that do not fit each other are refused", "[data][tensor_dataset]") {
  const float infinity = std::numeric_limits<float>::infinity();
  QUANTRAIN_CHECK_ERROR(SampleArray::floats({2, 2}, {0.0f, 1.0f, 2.0f, infinity}),
                        DataError,
                        "[dataset] value inf of sample 1, element 1");
  QUANTRAIN_CHECK_ERROR(
      SampleArray::floats({2, 2}, {0.0f}), DataError, "1 values do not fill shape [2, 2]");
  QUANTRAIN_CHECK_ERROR(SampleArray::floats({0, 2}, {}), DataError, "is empty");
  QUANTRAIN_CHECK_ERROR(
      SampleArray::floats({}, {1.0f}), DataError, "samples have shape [], expected [N, ...]");
  QUANTRAIN_CHECK_ERROR(SampleArray::bytes({1, 2}, {1, 2}, {0.0f, 1.0f}, {{0.0f}, {1.0f}}),
                        QuantError,
                        "1 offsets and 1 scales of features");
  QUANTRAIN_CHECK_ERROR(
      TensorDataset(std::vector<SampleArray>{}, Targets{}), DataError, "has no input");
  QUANTRAIN_CHECK_ERROR(
      TensorDataset(std::vector<SampleArray>{numbered_rows(3), numbered_rows(4)}, Targets{}),
      DataError,
      "input 0 has 3 samples, input 1 has 4");
  QUANTRAIN_CHECK_ERROR(
      TensorDataset(SampleArray::floats({3}, {1, 2, 3}), Targets{}),
      DataError,
      "input 0 has shape [3], expected [N, ...]: for one value per sample, use [3, 1]");
  QUANTRAIN_CHECK_ERROR(TensorDataset(numbered_rows(3), numbered_rows(4)),
                        DataError,
                        "3 samples, but target 0 has 4");
  QUANTRAIN_CHECK_ERROR(
      TensorDataset(numbered_rows(3), Labels{{0, 1}, 2}), DataError, "3 samples, but 2 labels");
  QUANTRAIN_CHECK_ERROR(TensorDataset(numbered_rows(3), Labels{{0, 1, 2}, 2}),
                        DataError,
                        "label 2 of sample 2 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(TensorDataset(numbered_rows(3), Labels{{0, 1, -1}, 2}),
                        DataError,
                        "label -1 of sample 2 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(
      TensorDataset(numbered_rows(3), Labels{{0, 0, 0}, 0}), DataError, "number of classes is 0");
}

TEST_CASE("mixup mixes two samples and their targets in the same shares", "[data][mixup]") {
  // Each sample has its own value and class, so a mixture shows which samples it consists of.
  constexpr int64_t kSamples = 40;
  const TensorDataset labelled(SampleArray::floats({kSamples, 1}, counting_floats(kSamples)),
                               Labels{labels_of(kSamples, kSamples), kSamples});
  DataLoader loader(labelled, {.batch = 16, .shuffle = true, .seed = 2, .mixup = 0.2});
  const FloatEpoch epoch = run_floats(loader);
  int mixed = 0;
  for (size_t i = 0; i < epoch.inputs.size(); ++i) {
    float expected = 0.0f;
    float sum = 0.0f;
    for (int64_t c = 0; c < kSamples; ++c) {
      const float share = epoch.targets[i * kSamples + static_cast<size_t>(c)];
      expected += share * static_cast<float>(c);
      sum += share;
    }
    CHECK(sum == test::Approx(1.0f));
    CHECK(epoch.inputs[i] == test::Approx(expected).margin(1e-4));
    const float own = epoch.targets[i * kSamples + static_cast<size_t>(epoch.labels[i])];
    CHECK(own >= 0.5f);
    mixed += own < 0.99f ? 1 : 0;
  }
  CHECK(mixed > 5);
  CHECK(run_floats(loader) == epoch);
  CHECK(run_floats(loader.epoch(1)).inputs != epoch.inputs);
  // A sample's partner does not depend on its batch.
  const FloatEpoch other = run_floats(DataLoader(labelled, {.batch = 3, .seed = 2, .mixup = 0.2}));
  const std::vector<int64_t> order = loader.epoch(0).order();
  for (size_t i = 0; i < order.size(); ++i)
    CHECK(epoch.inputs[i] == other.inputs[static_cast<size_t>(order[i])]);

  const TensorDataset regression(SampleArray::bytes({2, 1}, {0, 200}),
                                 SampleArray::floats({2, 1}, {0.0f, 200.0f / 255.0f}));
  for (const Batch& batch : DataLoader(regression, {.seed = 4, .mixup = 1.0})) {
    for (int64_t i = 0; i < 2; ++i)
      CHECK(std::abs(batch.input.data()[i] - batch.targets[0].data()[i]) <= 0.5f / 255.0f + 1e-6f);
  }
}

TEST_CASE("mixup refuses an invalid alpha and a data set without targets", "[data][mixup]") {
  const auto run_one = [](const TensorDataset& dataset, double alpha) {
    return run_floats(DataLoader(dataset, {.mixup = alpha}));
  };
  QUANTRAIN_CHECK_ERROR(run_one(TensorDataset(numbered_rows(3), SameAsInput{}), 2.0),
                        DataError,
                        "[mixup] alpha is 2, expected 0 (none) or 0.01 to 1");
  QUANTRAIN_CHECK_ERROR(
      run_one(TensorDataset(numbered_rows(3), SameAsInput{}), -0.2), DataError, "alpha");
  QUANTRAIN_CHECK_ERROR(run_one(TensorDataset(numbered_rows(3), Targets{}), 0.2),
                        DataError,
                        "mixup mixes targets, but the data set has none");
}

}  // namespace quantrain
