#include "framework/integer/program_file.hpp"

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/memory_taken.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::integer {
namespace {

using quantrain::test::Child;
using quantrain::test::in_child;
using quantrain::test::read_bytes;
using quantrain::test::TemporaryFolder;
using test::Builder;
using test::kX;
using test::RandomProduct;

}  // namespace

TEST_CASE("a small file that asks for much memory is refused, unless the caller allows it",
          "[integer][program_file]") {
  // A 1x1 convolution of one pixel. It pads the pixel by `far` on each side and gives nine results.
  const auto file_of = [](int64_t far) {
    Builder b;
    const int x = b.input({1, 1, 1}, kX);
    const RandomProduct p({.outputs = 1, .length = 1, .x = kX}, 1);
    const kernels::Conv2dShape shape{.stride_h = far, .stride_w = far, .pad_h = far, .pad_w = far};
    b.program.outputs = {
        b.accumulators("far", QuantizedConv2d{shape, p.product}, {x}, {3, 3, 1}, p.scale)};
    const TemporaryFolder folder;
    save_program(folder / "model", b.program);
    return read_bytes(folder / "model");
  };
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(file_of(1 << 15)), ShapeError, "[far] a value has more");
  // The largest possible convolution takes only the memory of one row of its padded image.
  const int64_t far = (1 << 14) - 1;
  const std::vector<uint8_t> file = file_of(far);
  CHECK(file.size() < 1000);
  const IntegerModel model = IntegerModel::load(file);
  CHECK(model.memory(1) < 1 << 20);
  const int64_t before = pool::counters().bytes_in_use;
  const int64_t peak = pool::counters().peak_bytes_in_use;
  std::vector<int32_t> y(9);
  model.run_codes(std::vector<uint8_t>{100}, y);
  CHECK(pool::counters().peak_bytes_in_use <= std::max(peak, before + (1 << 20)));
  CHECK(y[4] != y[0]);
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(file, 1000),
                        DataError,
                        " bytes of memory up to layer \"far\", the limit is 1000");
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(file, 1000), DataError, "the limit is 1000; load it");

  // A small file can also describe a large output.
  Builder b;
  const int pixel = b.input({1, 1, 1}, kX);
  const RandomProduct p({.outputs = 1, .length = 1, .x = kX}, 1);
  const kernels::Conv2dShape wide{.pad_h = 10000, .pad_w = 10000};
  b.program.outputs = {b.accumulators(
      "wide", QuantizedConv2d{wide, p.product}, {pixel}, {20001, 20001, 1}, p.scale)};
  const TemporaryFolder folder;
  save_program(folder / "wide", b.program);
  QUANTRAIN_CHECK_ERROR(
      IntegerModel::load(folder / "wide"), DataError, "/wide] the model takes 16");
  CHECK(load_program(folder / "wide", int64_t{1} << 31) == b.program);
}

TEST_CASE("weights that grow when they are packed for the kernels count as memory",
          "[integer][program_file]") {
  Builder b;
  const int x = b.input({1, 1, 1 << 15}, kX);
  // Each of the many groups has its own weight panel.
  const RandomProduct p({.outputs = 1 << 14, .length = 2, .x = kX}, 1);
  const kernels::Conv2dShape shape{.c = 1 << 15, .o = 1 << 14, .groups = 1 << 14};
  b.program.outputs = {
      b.accumulators("groups", QuantizedConv2d{shape, p.product}, {x}, {1, 1, 1 << 14}, p.scale)};
  const int64_t weights = prepared_bytes(b.program.steps[0].operation);
  const int64_t before = quantrain::test::resident_bytes();
  const IntegerModel model(b.program);
  const int64_t taken = quantrain::test::resident_bytes() - before;
  if (taken > 0 && !quantrain::test::kSanitized) {
    CHECK(taken >= weights);
    CHECK(taken <= weights + weights / 4 + 4096);
  }
  CHECK_THROWS_AS(check_memory(b.program, weights), DataError);
  check_memory(b.program, 2 * weights + 10 * (1 << 20));
}

TEST_CASE("pools with too many window sizes or too many reads are refused at once",
          "[integer][program_file]") {
  // The number of rows and columns inside the image differs between windows.
  const auto pool = [](int64_t size, int64_t kernel) {
    return QuantizedAvgPool2d{.shape = test::pool_shape(size, size, 1, kernel, 1, kernel - 1),
                              .means = {{1, {}}},
                              .y = {}};
  };
  QUANTRAIN_CHECK_ERROR(pool(200, 200).validate("pool"),
                        ShapeError,
                        "has windows of more than 16384 different sizes");
  const Child child = in_child([&]() -> std::string {
    pool(2800, 2800).validate("pool");
    return "valid";
  });
  CHECK(
      child.text ==
      "[pool] 31348801 windows of 7840000 elements are more than 68719476736 reads: take a larger "
      "stride or a smaller kernel");
  CHECK(child.kilobytes < 20000);
  QUANTRAIN_CHECK_ERROR(
      QuantizedAvgPool2d::make(pool(200, 200).shape, kX, kX, Activation::kNone),
      ShapeError,
      "[avg_pool2d] kernel [200, 200] with padding [199, 199] has windows of more");
  // An average pool with many window sizes is valid if they are within the limit. A max pool with
  // one large window is valid too, but a max pool with too many reads is not.
  QuantizedAvgPool2d most = pool(100, 100);
  most.means.clear();
  for (const int64_t count : window_counts(most.shape))
    most.means.push_back({count, {1 << 30, 31}});
  most.validate("pool");
  QUANTRAIN_CHECK_ERROR(
      (QuantizedMaxPool2d{test::pool_shape(1200, 1200, 1, 600, 1, 0)}.validate("max")),
      ShapeError,
      "[max] 361201 windows of 360000 elements are more than 68719476736 reads");
  QuantizedMaxPool2d{test::pool_shape(1024, 1024, 64, 1024, 1, 0)}.validate("global");
}

TEST_CASE("the time to load a concatenation is proportional to its width",
          "[integer][program_file]") {
  const auto seconds = [](size_t width) {
    Builder b;
    std::vector<int> inputs;
    for (size_t i = 0; i < width; ++i) inputs.push_back(b.input({1}, kX));
    const auto op = QuantizedConcat::make(
        1, std::vector<int64_t>(width, 1), std::vector<QParams>(width, kX), kX, Activation::kNone);
    b.program.outputs = {b.codes("all", op, inputs, {static_cast<int64_t>(width)}, kX)};
    const TemporaryFolder folder;
    save_program(folder / "wide", b.program);
    const std::vector<uint8_t> file = read_bytes(folder / "wide");
    const std::clock_t begin = std::clock();
    CHECK(IntegerModel::load(file).input_count() == width);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double narrow = seconds(1000);
  if (!quantrain::test::kSanitized) CHECK(seconds(8000) < 24 * narrow + 0.1);
}

}  // namespace quantrain::integer
