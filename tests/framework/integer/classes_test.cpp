#include "framework/integer/classes.hpp"

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"

namespace quantrain::integer {
namespace {

using test::Builder;

constexpr int32_t kOne = 1 << 30;

/// Rows of `classes` accumulators, one row for each of `rows` positions. They are the inputs, whose
/// zero point is 0, and mean scale[c] * input.
IntegerModel identity(const Shape& shape, std::vector<double> scale) {
  const int64_t classes = shape.back();
  std::vector<int8_t> weight(static_cast<size_t>(classes * classes), 0);
  for (int64_t c = 0; c < classes; ++c) weight[static_cast<size_t>(c * classes + c)] = 1;
  QuantizedLinear linear{
      .rows = shape.elements() / classes, .inputs = classes, .outputs = classes, .product = {}};
  linear.product.weight = std::move(weight);
  Builder b;
  const int x = b.input(shape, {{.bits = 8}, -1, {1.0f}, {0}});
  b.program.outputs = {b.accumulators("scores", linear, {x}, shape, std::move(scale))};
  return IntegerModel(b.program);
}

std::vector<int32_t> classes_of(const IntegerModel& model,
                                const std::vector<uint8_t>& x,
                                size_t count) {
  std::vector<int32_t> classes(count, -1);
  model.classify_codes(x, classes);
  return classes;
}

}  // namespace

TEST_CASE("factors make integers of different scales comparable", "[integer][classes]") {
  Value output{.name = "y", .shape = {3}, .scale = {0.5}};
  CHECK(class_factors(output) == std::vector<int32_t>{1});
  output.scale = {0.5, 2.0, 1.0};
  CHECK(class_factors(output) == std::vector<int32_t>{kOne / 4, kOne, kOne / 2});
  // 2^30 / 3 is 357913941.33; a scale that is 2^31 times smaller has factor 0.5, which rounds to 1.
  output.scale = {3.0, 1.0, 3.0 / 0x1p31};
  CHECK(class_factors(output) == std::vector<int32_t>{kOne, 357913941, 1});
  // The largest magnitudes do not overflow 64 bits.
  const int32_t extremes[] = {INT32_MIN, INT32_MAX};
  CHECK(class_of(extremes, 2, {kOne, kOne}) == 1);
  const int32_t both[] = {INT32_MAX, INT32_MIN};
  CHECK(class_of(both, 2, {kOne, kOne}) == 0);
}

TEST_CASE("the class is the largest real number, not the largest integer", "[integer][classes]") {
  // Real numbers: 2 a and b / 2.
  const IntegerModel model = identity({2}, {2.0, 0.5});
  const std::vector<uint8_t> x{10,
                               39,  // 20 and 19.5
                               10,
                               40,  // 20 and 20: the lowest index wins
                               10,
                               41,  // 20 and 20.5
                               60,
                               255,  // 120 and 127.5
                               64,
                               255};
  CHECK(classes_of(model, x, 5) == std::vector<int32_t>{0, 0, 1, 1, 0});
  QUANTRAIN_CHECK_ERROR(model.logit_scale(),
                        QuantError,
                        "[scores] the output has 2 scales: run() on floats gives real values; one "
                        "scale needs per-tensor weights (WeightConfig::per_channel = false");
}

TEST_CASE("an output of images has a class for each pixel", "[integer][classes]") {
  const std::vector<uint8_t> x{1, 2, 3, 3, 2, 1, 0, 9, 9, 5, 5, 5,   // 2 x 2 pixels of 3 classes
                               0, 0, 1, 0, 1, 0, 1, 0, 0, 7, 8, 9};  // a second image
  for (const std::vector<double>& scale : {std::vector<double>{0.5}, {1.0, 1.0, 1.0}}) {
    const IntegerModel model = identity({2, 2, 3}, scale);
    CHECK(classes_of(model, x, 8) == std::vector<int32_t>{2, 0, 1, 0, 2, 1, 0, 2});
    std::vector<int32_t> one(2);
    QUANTRAIN_CHECK_ERROR(model.classify_codes(x, one),
                          ShapeError,
                          "there is room for 2 classes, but 2 samples have 8");
  }
  // Class 2 counts twice.
  const IntegerModel scaled = identity({2, 2, 3}, {1.0, 1.0, 2.0});
  CHECK(classes_of(scaled, x, 8) == std::vector<int32_t>{2, 0, 2, 2, 2, 1, 0, 2});
}

TEST_CASE("many images are classified in chunks", "[integer][classes]") {
  const IntegerModel model = identity({3, 2}, {1.0, 2.0});
  const int64_t n = IntegerModel::kChunk + 5;
  const std::vector<uint8_t> x = test::random_bytes(n * 6, 3);
  const std::vector<int32_t> classes = classes_of(model, x, static_cast<size_t>(n * 3));
  for (size_t i = 0; i < classes.size(); ++i)
    CHECK(classes[i] == (2 * x[2 * i + 1] > x[2 * i] ? 1 : 0));
}

}  // namespace quantrain::integer
