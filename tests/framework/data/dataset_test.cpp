#include "framework/data/dataset.hpp"

#include <limits>
#include <set>
#include <string>
#include <type_traits>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/framework/data/idx_files.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::counting;
using test::gzip;
using test::idx;
using test::TemporaryFolder;

}  // namespace

TEST_CASE("a dataset of bytes gives labels, bytes and images with values byte / 255",
          "[data][dataset]") {
  const Dataset dataset({3, 2, 1, 2}, counting(12), {0, 2, 1}, 3);
  CHECK(dataset.size() == 3);
  CHECK(dataset.classes() == 3);
  CHECK(dataset.image_shape() == Shape{2, 1, 2});
  CHECK(dataset.image(1)[0] == 4);
  CHECK(dataset.label(1) == 2);
  const Batch batch = dataset.batch(1, 3);
  CHECK(batch.size() == 2);
  CHECK(batch.input.shape() == Shape{2, 2, 1, 2});
  CHECK(batch.labels == std::vector<int32_t>{2, 1});
  for (size_t i = 0; i < 8; ++i) {
    CHECK(batch.bytes()[i] == 4 + i);
    CHECK(batch.input.data()[i] == static_cast<float>(4 + i) / 255.0f);
  }
}

TEST_CASE("every byte becomes byte / 255 exactly", "[data][dataset]") {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  const Batch batch = Dataset({1, 16, 16, 1}, bytes, {0}, 1).batch(0, 1);
  for (int i = 0; i < 256; ++i) CHECK(batch.input.data()[i] == static_cast<float>(i) / 255.0f);
}

TEST_CASE("floats become codes of their declared range", "[data][dataset]") {
  const std::vector<float> pixels{0.0f, 1.0f / 255.0f, 0.4f, 1.0f};
  const Batch unit = Dataset::from_floats({1, 2, 2, 1}, pixels, {0}, 1).batch(0, 1);
  CHECK(std::vector<uint8_t>(unit.bytes().begin(), unit.bytes().end()) ==
        std::vector<uint8_t>{0, 1, 102, 255});

  // The scale 2 / 255 is rounded up to float32, so the zero point is round(127.49999) = 127. The
  // value 0 is exact; -1 and 1 are off by half a step.
  const std::vector<float> centred{-1.0f, 0.0f, 0.5f, 1.0f};
  const Dataset dataset = Dataset::from_floats({1, 2, 2, 1}, centred, {0}, 1, {-1.0f, 1.0f});
  const Batch batch = dataset.batch(0, 1);
  CHECK(dataset.range() == Range{-1.0f, 1.0f});
  CHECK(int{dataset.zero_byte()} == 127);
  CHECK(batch.input.data()[1] == 0.0f);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(std::abs(batch.input.data()[i] - centred[i]) <= 1.0f / 255.0f + 1e-6f);  // half a step
  }
}

TEST_CASE("a data set of bytes may declare a range and features", "[data][dataset]") {
  const InputFeatures features{{100.0f, 10.0f}, {50.0f, 2.0f}};
  const Dataset dataset({2, 2}, {0, 255, 51, 102}, {0, 1}, 2, {0.0f, 5.0f}, features);
  CHECK(dataset.range() == Range{0.0f, 5.0f});
  CHECK(dataset.features() == features);
  const Batch batch = dataset.batch(0, 2);
  CHECK(batch.input.data()[1] == 5.0f);
  CHECK(batch.input.data()[2] == 1.0f);
  CHECK(batch.bytes()[1] == 255);
  CHECK(*batch.input.source_codes()->features == features);
  QUANTRAIN_CHECK_ERROR(Dataset({1, 2}, {1, 2}, {0}, 1, {1000.0f, 1001.0f}),
                        QuantError,
                        "[dataset] the range [1000, 1001] is too far from 0");
  QUANTRAIN_CHECK_ERROR(
      Dataset({1, 2}, {1, 2}, {0}, 1, {0.0f, 1.0f}, {{0.0f}, {1.0f}}), QuantError, "expected one");
}

TEST_CASE("a range far from 0 is refused before two classes share one code", "[data][dataset]") {
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < 1000; ++i) {
    values.push_back(1000.0f + 0.001f * static_cast<float>(i));
    labels.push_back(i < 500 ? 0 : 1);
  }
  QUANTRAIN_CHECK_ERROR(Dataset::from_floats({1000, 1}, values, labels, 2, {1000.0f, 1001.0f}),
                        QuantError,
                        "[dataset] the range [1000, 1001] is too far from 0: real 0 must have a "
                        "code, too, so only 1");
  // With the offset that the message recommends, all 256 codes are used.
  const Dataset dataset =
      Dataset::from_floats({1000, 1}, values, labels, 2, {0.0f, 1.0f}, {{1000.0f}, {1.0f}});
  const Batch batch = dataset.batch(0, 1000);
  CHECK(std::set<uint8_t>(batch.bytes().begin(), batch.bytes().end()).size() == 256);
}

TEST_CASE("a data set counts the values that saturate, and refuses most of them if asked",
          "[data][dataset]") {
  const std::vector<float> values{0.5f, 2.0f, 3.0f, 1.0f};
  const auto make = [&](Outside outside) {
    return Dataset::from_floats({4, 1}, values, {0, 0, 0, 0}, 1, {0.0f, 1.0f}, {}, outside);
  };
  CHECK(make(Outside::kSaturate).saturated() == 2);
  CHECK(make(Outside::kSaturate).first(1).saturated() == 2);
  CHECK(make(Outside::kRefuseMost).saturated() == 2);
  QUANTRAIN_CHECK_ERROR(make(Outside::kRefuse), DataError, "value 2 at 1");
  const std::vector<float> pixels{0.0f, 120.0f, 255.0f, 30.0f};
  QUANTRAIN_CHECK_ERROR(
      Dataset::from_floats({4, 1}, pixels, {0, 0, 0, 0}, 1, {0.0f, 1.0f}, {}, Outside::kRefuseMost),
      DataError,
      "[dataset] 3 of 4 values lie outside of [0, 1], what the codes of the samples mean");
}

TEST_CASE("a data set that refuses most values that saturate looks at each column",
          "[data][dataset]") {
  std::vector<float> values(10 * 3, 0.5f);
  for (size_t i = 1; i < values.size(); i += 3) values[i] = 20.0f;
  const auto make = [&](Outside outside) {
    return Dataset::from_floats(
        {10, 3}, values, std::vector<int32_t>(10), 1, {0.0f, 1.0f}, {}, outside);
  };
  QUANTRAIN_CHECK_ERROR(make(Outside::kRefuseMost),
                        DataError,
                        "[dataset] 10 of 10 values of column 1 lie outside of [0, 1]");
  CHECK(make(Outside::kSaturate).saturated() == 10);
}

TEST_CASE("floats outside their declared range are rejected", "[data][dataset]") {
  const auto make = [](std::vector<float> values, Range range) {
    return Dataset::from_floats({1, 1, 2, 1}, values, {0}, 1, range);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  QUANTRAIN_CHECK_ERROR(make({0.0f, 1.5f}, {0.0f, 1.0f}),
                        DataError,
                        "value 1.5 at 1 (sample 0) is outside the range [0, 1]: declare the range");
  QUANTRAIN_CHECK_ERROR(make({-0.5f, 0.0f}, {0.0f, 1.0f}), DataError, "value -0.5 at 0");
  QUANTRAIN_CHECK_ERROR(make({0.0f, nan}, {0.0f, 1.0f}),
                        DataError,
                        "value nan of sample 0, element 1: leave the sample out, or replace");
  QUANTRAIN_CHECK_ERROR(make({0.0f, 0.0f}, {1.0f, 1.0f}),
                        QuantError,
                        "[dataset] the range [1, 1] of the input is empty");
  QUANTRAIN_CHECK_ERROR(make({0.0f, 0.0f}, {nan, 1.0f}), QuantError, "is empty or not finite");
  QUANTRAIN_CHECK_ERROR(make({0.0f, 0.0f}, {0.0f, infinity}), QuantError, "not finite");
  QUANTRAIN_CHECK_ERROR(
      make({0.0f}, {0.0f, 1.0f}), DataError, "1 values do not fill shape [1, 1, 2, 1]");
}

TEST_CASE("images, labels and classes that do not fit together are rejected", "[data][dataset]") {
  QUANTRAIN_CHECK_ERROR(
      Dataset({8}, counting(8), {0, 0}, 1),
      DataError,
      "images have shape [8], expected [N, ...], such as [N, H, W, C] or rows [N, F]");
  QUANTRAIN_CHECK_ERROR(
      Dataset({0, 2, 2, 1}, {}, {}, 1), DataError, "is empty: images have shape [0, 2, 2, 1]");
  QUANTRAIN_CHECK_ERROR(Dataset({2, 2, 0, 1}, {}, {0, 0}, 1), DataError, "is empty");
  QUANTRAIN_CHECK_ERROR(Dataset({2, 2, 2, 1}, counting(7), {0, 0}, 1),
                        DataError,
                        "7 bytes do not fill shape [2, 2, 2, 1]");
  QUANTRAIN_CHECK_ERROR(
      Dataset({2, 2, 2, 1}, counting(8), {0}, 1), DataError, "2 images, but 1 labels");
  QUANTRAIN_CHECK_ERROR(Dataset({2, 2, 2, 1}, counting(8), {0, 3}, 3),
                        DataError,
                        "label 3 of image 1 is outside [0, 3)");
  QUANTRAIN_CHECK_ERROR(
      Dataset({2, 2, 2, 1}, counting(8), {-1, 0}, 3), DataError, "label -1 of image 0");
  QUANTRAIN_CHECK_ERROR(
      Dataset({2, 2, 2, 1}, counting(8), {0, 0}, 0), DataError, "number of classes is 0");
}

TEST_CASE("the input of a batch carries its bytes until it is changed", "[data][dataset]") {
  const std::vector<float> values{-4.0f, 0.0f, 1.0f, 4.0f};
  const Dataset dataset = Dataset::from_floats({2, 2}, values, {0, 0}, 1, {-4.0f, 4.0f});
  Batch batch = dataset.batch(0, 2);
  const auto codes = batch.input.source_codes();
  REQUIRE(codes != nullptr);
  CHECK(codes->params == integer::input_params({-4.0f, 4.0f}, "test"));
  CHECK(codes->features == nullptr);
  CHECK(batch.bytes().data() == codes->u8());
  for (size_t i = 0; i < 4; ++i) {
    CHECK(batch.input.data()[i] ==
          dequantize(batch.bytes()[i], codes->params.scale[0], codes->params.zero_point[0]));
  }
  batch.input.mutable_data()[1] = 2.0f;
  QUANTRAIN_CHECK_ERROR(
      batch.bytes(), DataError, "[batch] the input has no codes: it was not made from codes");
  const Tensor moved = std::move(batch.input);
  QUANTRAIN_CHECK_ERROR(batch.bytes(), DataError, "changed or moved from");
}

TEST_CASE("samples may have any rank", "[data][dataset]") {
  const Dataset rows({3, 4}, counting(12), {0, 2, 1}, 3);
  CHECK(rows.image_shape() == Shape{4});
  CHECK(rows.image(2)[0] == 8);
  CHECK(rows.batch(1, 3).input.shape() == Shape{2, 4});
  const Dataset signals({3, 2, 2}, counting(12), {0, 2, 1}, 3);
  CHECK(signals.batch(0, 3).input.shape() == Shape{3, 2, 2});
}

TEST_CASE("each feature has its own encoding, which the batch carries", "[data][dataset]") {
  const InputFeatures features{{1000.0f, -0.5f}, {100.0f, 0.125f}};
  const std::vector<float> raw{1100.0f, -0.5f, 900.0f, -0.375f};  // z: 1, 0, -1, 1
  const Dataset dataset = Dataset::from_floats({2, 2}, raw, {0, 0}, 1, {-1.0f, 1.0f}, features);
  CHECK(dataset.features() == features);
  const Batch batch = dataset.batch(0, 2);
  CHECK(*batch.input.source_codes()->features == features);
  const float expected[] = {1.0f, 0.0f, -1.0f, 1.0f};
  for (int64_t i = 0; i < 4; ++i)
    CHECK(std::abs(batch.input.data()[i] - expected[i]) <= 1.0f / 255.0f + 1e-6f);  // half a step
  CHECK(Dataset({1, 2}, counting(2), {0}, 1).features().empty());

  const auto make = [&](std::vector<float> values, InputFeatures with) {
    return Dataset::from_floats({1, 2}, values, {0}, 1, {-1.0f, 1.0f}, std::move(with));
  };
  QUANTRAIN_CHECK_ERROR(
      make({1000.0f, 0.0f}, features),
      DataError,
      "value 0 at 1 (sample 0), which is 4 after the offset and scale of feature 1, is outside the "
      "range [-1, 1]");
  QUANTRAIN_CHECK_ERROR(make({0.0f, 0.0f}, {{0.0f}, {1.0f}}),
                        QuantError,
                        "1 offsets and 1 scales of features, expected one for each of the 2");
  QUANTRAIN_CHECK_ERROR(
      make({0.0f, 0.0f}, {{0.0f, 0.0f}, {1.0f, 0.0f}}), QuantError, "feature 1 has offset 0");
}

TEST_CASE("first takes the first images of a dataset", "[data][dataset]") {
  const Dataset dataset({3, 2, 1, 2}, counting(12), {0, 2, 1}, 3);
  CHECK(dataset.first(2).size() == 2);
  CHECK(dataset.first(2).label(1) == 2);
  CHECK(dataset.first(3).size() == 3);
  QUANTRAIN_CHECK_ERROR(dataset.first(4), DataError, "cannot take the first 4 of 3 images");
  QUANTRAIN_CHECK_ERROR(dataset.first(0), DataError, "cannot take the first 0");
  QUANTRAIN_CHECK_ERROR(
      dataset.first(2).batch(0, 3), DataError, "images [0, 3) are not within [0, 2)");
  QUANTRAIN_CHECK_ERROR(dataset.batch(1, 1), DataError, "images [1, 1) are not within");
  QUANTRAIN_CHECK_ERROR(dataset.batch(-1, 1), DataError, "images [-1, 1) are not within");
  const Dataset two = dataset.first(2);
  QUANTRAIN_CHECK_ERROR(two.image(2), DataError, "image 2 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(dataset.image(-1), DataError, "image -1 is outside [0, 3)");
  QUANTRAIN_CHECK_ERROR(dataset.label(3), DataError, "image 3 is outside [0, 3)");
}

TEST_CASE("a folder with plain or gzipped MNIST files is a dataset", "[data][dataset]") {
  const TemporaryFolder folder;
  test::write_bytes(folder / "train-images-idx3-ubyte", idx({2, 2, 3}, counting(12)));
  test::write_bytes(folder / "train-labels-idx1-ubyte.gz", gzip(idx({2}, {9, 0})));
  const Dataset train = Dataset::mnist(folder.path(), Split::kTrain);
  CHECK(train.size() == 2);
  CHECK(train.classes() == 10);
  CHECK(train.image_shape() == Shape{2, 3, 1});
  CHECK(train.label(0) == 9);
  CHECK(train.image(1)[0] == 6);
  const Dataset one = Dataset::mnist(folder.path(), Split::kTrain, {.samples = 1});
  CHECK(one.size() == 1);
  CHECK(one.label(0) == 9);
  QUANTRAIN_CHECK_ERROR(Dataset::mnist(folder.path(), Split::kTrain, {.samples = 3}),
                        DataError,
                        "cannot take the first 3 of 2 images");
  QUANTRAIN_CHECK_ERROR(Dataset::mnist(folder.path(), Split::kTrain, {.max_bytes = 11}),
                        DataError,
                        "needs 12 bytes, the limit is 11");
  static_assert(!std::is_invocable_v<decltype(&Dataset::mnist), std::string, Split, int>);
  QUANTRAIN_CHECK_ERROR(Dataset::mnist(folder.path(), Split::kTest),
                        DataError,
                        "has neither t10k-images-idx3-ubyte nor t10k-images-idx3-ubyte.gz");
  QUANTRAIN_CHECK_ERROR(
      Dataset::mnist(folder / "none", Split::kTest), DataError, "/none: is not a folder");
}

TEST_CASE("if IDX files do not fit each other, the error names one of them", "[data][dataset]") {
  const TemporaryFolder folder;
  test::write_bytes(folder / "images", idx({2, 2, 3}, counting(12)));
  test::write_bytes(folder / "flat", idx({12}, counting(12)));
  test::write_bytes(folder / "colour", idx({2, 1, 2, 3}, counting(12)));
  test::write_bytes(folder / "video", idx({2, 1, 1, 2, 3}, counting(12)));
  test::write_bytes(folder / "labels", idx({2}, {9, 0}));
  test::write_bytes(folder / "three", idx({3}, {9, 0, 1}));
  const auto load = [&](const char* images, const char* labels, int64_t classes) {
    return Dataset::from_idx(folder / images, folder / labels, classes);
  };
  CHECK(load("colour", "labels", 10).image_shape() == Shape{1, 2, 3});
  QUANTRAIN_CHECK_ERROR(load("images", "three", 10), DataError, "2 images, but 3 labels");
  QUANTRAIN_CHECK_ERROR(load("images", "three", 10), DataError, "/three");
  QUANTRAIN_CHECK_ERROR(
      load("images", "labels", 9), DataError, "label 9 of image 0 is outside [0, 9)");
  QUANTRAIN_CHECK_ERROR(
      load("flat", "labels", 10), DataError, "flat: images have shape [12], expected [N, H, W]");
  QUANTRAIN_CHECK_ERROR(
      load("video", "labels", 10), DataError, "video: images have shape [2, 1, 1, 2, 3], expected");
  QUANTRAIN_CHECK_ERROR(
      load("images", "images", 10), DataError, "images: labels have shape [2, 2, 3], expected [N]");
}

TEST_CASE("a dataset that was moved from keeps its data", "[data][dataset]") {
  Dataset first({2, 1, 2, 1}, {1, 2, 3, 4}, {0, 1}, 2);
  const test::Child child = test::in_child([&]() -> std::string {
    const Dataset second = std::move(first);
    const Batch batch = first.batch(0, 2);  // NOLINT(bugprone-use-after-move)
    return std::to_string(batch.bytes()[3]) + std::to_string(second.image(1)[0]) +
           std::to_string(first.classes());
  });
  CHECK(child.text == "432");
}

}  // namespace quantrain
