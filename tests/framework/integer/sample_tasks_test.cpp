#include "framework/integer/sample_tasks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/integer/memory_plan.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/memory_taken.hpp"
#include "tests/threads.hpp"

namespace quantrain::integer {
namespace {

using test::Builder;
using test::kX;
using test::kY;
using test::RandomProduct;

/// A convolution with 5 x 5 windows of a square image with 8 channels.
kernels::Conv2dShape image(int64_t side) {
  return {.h = side, .w = side, .c = 8, .o = 8, .kh = 5, .kw = 5, .pad_h = 2, .pad_w = 2};
}

/// A program with two inputs, of which the second has features, and three outputs: accumulators,
/// codes, and the same codes again.
Program two_inputs() {
  Builder b;
  const int x0 = b.input({12, 12, 4}, kX);
  const int x1 = b.input({12, 12, 4}, kX);
  b.program.values[static_cast<size_t>(x1)].features = {{0.5f, 1, 0, 2}, {2, 1, 0.25f, 1}};
  const auto conv = [&](int x, uint64_t seed) {
    kernels::Conv2dShape shape = image(12);
    shape.c = 4;
    shape.o = 16;
    const RandomProduct p({.outputs = 16, .length = 100, .x = kX}, seed);
    return b.codes("conv", QuantizedConv2d{shape, p.behind(kY)}, {x}, {12, 12, 16}, kY);
  };
  const int y0 = conv(x0, 1);
  const int y1 = conv(x1, 2);
  const int flat = b.codes("flat", View{12 * 12 * 16}, {y0}, {12 * 12 * 16}, kY);
  const RandomProduct last({.outputs = 3, .length = 12 * 12 * 16, .x = kY}, 3);
  const int sums = b.accumulators(
      "sums", QuantizedLinear{1, 12 * 12 * 16, 3, last.product}, {flat}, {3}, last.scale);
  b.program.outputs = {sums, y1, y1};
  return b.program;
}

}  // namespace

TEST_CASE("tasks take whole samples if there are enough for all threads",
          "[integer][sample_tasks]") {
  const quantrain::test::DefaultThreads restore;
  set_threads(1);
  for (const int64_t n : {1, 8, 256}) CHECK(sample_tasks(4, n) == 1);
  if (!QUANTRAIN_THREADS) return;
  for (const int threads : {2, 3, 5, 16}) {
    set_threads(threads);
    for (const int64_t least : {1, 4, 32, 1000}) {
      for (int64_t n = 1; n <= 300; ++n) {
        CAPTURE(threads, least, n);
        const int64_t tasks = sample_tasks(least, n);
        if (tasks == 1) continue;
        REQUIRE(tasks % threads == 0);
        REQUIRE(n / tasks >= least);
        // The time of the slowest thread, in samples, is at most a tenth above the mean.
        const int64_t largest = (n + tasks - 1) / tasks;
        REQUIRE(10 * tasks * largest <= 11 * n);
      }
    }
  }
  set_threads(2);
  CHECK(sample_tasks(4, 7) == 1);
  CHECK(sample_tasks(4, 8) == 2);
  CHECK(sample_tasks(4, 9) == 1);  // one thread would take five samples, the other one four
  CHECK(sample_tasks(4, 64) == 4);
  CHECK(sample_tasks(4, 256) == 16);
  CHECK(sample_tasks(32, 256) == 8);
  CHECK(sample_tasks(200, 256) == 1);
  set_threads(16);
  CHECK(sample_tasks(4, 64) == 16);
}

TEST_CASE("a task has enough work, and enough samples for the weights that it reads",
          "[integer][sample_tasks]") {
  CHECK(least_samples_per_task(test::mlp()) > 1000);         // hardly any work
  CHECK(least_samples_per_task(test::mlp(784, 256)) == 32);  // 200 KiB of weights, 1 KiB of values
  CHECK(least_samples_per_task(test::convolution(image(40))) == 4);  // 25 KiB of values
}

TEST_CASE("any number of threads gives the same results; if an input is NaN, no output is written",
          "[integer][sample_tasks]") {
  const quantrain::test::DefaultThreads restore;
  const IntegerModel model(two_inputs());
  const int64_t least = least_samples_per_task(model.program());
  REQUIRE(least <= 8);
  constexpr size_t kMany = IntegerModel::kChunk + 40;
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<std::vector<float>> floats;
  for (size_t i = 0; i < 2; ++i) {
    const size_t size = kMany * 12 * 12 * 4;
    Random random(i + 1);
    std::vector<float> values;
    for (size_t k = 0; k < size; ++k) values.push_back(random.uniform(-2.0f, 2.0f));
    bytes.emplace_back(size);
    model.quantize_input(values, bytes.back(), i);
    floats.push_back(std::move(values));
  }
  const auto parts = [](auto& all, size_t n) {
    using Element = std::remove_reference_t<decltype(all[0][0])>;
    std::vector<std::span<Element>> spans;
    for (auto& list : all) spans.push_back(std::span<Element>(list).first(list.size() / kMany * n));
    return spans;
  };
  const auto run = [&](const auto& x, size_t n, auto zero) {
    using Output = decltype(zero);
    std::vector<std::vector<Output>> y;
    for (size_t i = 0; i < 3; ++i)
      y.emplace_back(kMany * static_cast<size_t>(model.output_size(i)), Output{77});
    const auto to = parts(y, n);
    if constexpr (std::is_same_v<Output, float>)
      model.run(parts(x, n), to, Outside::kSaturate);
    else
      model.run_codes(parts(x, n), to);
    return y;
  };
  const auto& const_bytes = bytes;
  const auto& const_floats = floats;
  for (const size_t n : {size_t{1}, size_t{16}, size_t{17}, size_t{40}, size_t{64}, kMany}) {
    set_threads(1);
    const auto integers = run(const_bytes, n, int32_t{0});
    const auto reals = run(const_floats, n, 0.0f);
    for (const int threads : quantrain::test::thread_counts({1, 2, 3})) {
      CAPTURE(n, threads);
      set_threads(threads);
      CHECK(run(const_bytes, n, int32_t{0}) == integers);
      CHECK(run(const_floats, n, 0.0f) == reals);
    }
  }
  const int64_t several = sample_tasks(least, 64);
  CHECK((several > 1) == (threads() > 1));
  floats[1][50 * 12 * 12 * 4] = std::nanf("");
  std::vector<std::vector<float>> y;
  for (size_t i = 0; i < 3; ++i)
    y.emplace_back(64 * static_cast<size_t>(model.output_size(i)), 7.0f);
  const auto untouched = y;
  std::vector<std::span<const float>> x;
  for (const auto& list : floats) x.push_back(std::span(list).first(64 * 12 * 12 * 4));
  std::vector<std::span<float>> to;
  for (auto& list : y) to.push_back(list);
  QUANTRAIN_CHECK_ERROR(model.run(x, to, Outside::kSaturate), DataError, "the input has a NaN");
  CHECK(y == untouched);
}

TEST_CASE(
    "a model too small for tasks of whole samples allocates the same with any number of threads",
    "[integer][sample_tasks]") {
  const quantrain::test::DefaultThreads restore;
  const IntegerModel model(test::mlp());
  const std::vector<uint8_t> x(256 * 12);
  std::vector<int32_t> y(256 * 4);
  const auto allocations = [&](int threads) {
    set_threads(threads);
    model.run_codes(x, y);
    const int64_t before = pool::counters().allocations;
    model.run_codes(x, y);
    return pool::counters().allocations - before;
  };
  const int64_t alone = allocations(1);
  for (const int threads : quantrain::test::thread_counts({2, 3}))
    CHECK(allocations(threads) == alone);
}

TEST_CASE("each thread needs the scratch memory of its task", "[integer][sample_tasks]") {
  const quantrain::test::DefaultThreads restore;
  const Program program = test::convolution(image(40));
  const auto scratch = [&](int threads, int64_t n) {
    set_threads(threads);
    return memory(program, n) - n * plan_memory(program).sample_bytes;
  };
  const int64_t alone = scratch(1, 4);
  CHECK(alone > 0);
  for (const int threads : quantrain::test::thread_counts({2, 4}))
    CHECK(scratch(threads, 4 * threads) == threads * alone);
}

TEST_CASE("threads share a step only if it has enough work for several",
          "[integer][sample_tasks]") {
  const quantrain::test::DefaultThreads restore;
  // Of one sample: 40 * 40 * 8 * 200 products, and 40 * 40 * 8 outputs as long as 32 products each;
  // two samples have fewer than 2^23.
  const Program program = test::convolution(image(40));
  CHECK(least_samples_to_share(program.steps[0].operation) == 3);
  CHECK(least_samples_to_share(View{1}) == 0);
  const auto scratch = [&](int threads, int64_t n) {
    set_threads(threads);
    return memory(program, n) - n * plan_memory(program).sample_bytes;
  };
  for (const int threads : quantrain::test::thread_counts({2, 7})) {
    CHECK(scratch(threads, 1) == scratch(1, 1));
    CHECK(scratch(threads, 2) == scratch(1, 2));
    CHECK(scratch(threads, 3) > scratch(1, 3));
  }
}

TEST_CASE("a run in which tasks take whole samples takes the memory that was planned",
          "[integer][sample_tasks]") {
  const quantrain::test::DefaultThreads restore;
  for (const int threads : quantrain::test::thread_counts({1, 2, 4})) {
    set_threads(threads);
    for (const int64_t n : {16, 64, 256, 300}) {
      CAPTURE(threads, n);
      const IntegerModel model(test::convolution(image(20)));
      CHECK((sample_tasks(least_samples_per_task(model.program()), std::min<int64_t>(n, 256)) >
             1) == (threads > 1));
      const std::vector<uint8_t> x(static_cast<size_t>(n * model.input_shape().elements()));
      std::vector<int32_t> y(static_cast<size_t>(n * model.output_size()));
      const int64_t taken = quantrain::test::memory_taken([&] { model.run_codes(x, y); });
      const int64_t planned = model.memory(n);
      CHECK(taken <= planned + planned / 4 + 4096 * threads);
      CHECK(planned <= 2 * taken);
    }
  }
}

}  // namespace quantrain::integer
