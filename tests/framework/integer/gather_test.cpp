#include "framework/integer/gather.hpp"

#include <functional>

#include "framework/core/error.hpp"
#include "framework/integer/code_ranges.hpp"
#include "framework/integer/dead_channels.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/integer/operation.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

namespace quantrain::integer {
namespace {

using quantrain::test::for_each_isa;
using quantrain::test::for_each_thread_count;
using test::Builder;
using test::kSigned;
using test::kX;
using test::kY;
using test::random_bytes;
using test::random_index;

/// Computes equation (23) of docs/quantization.md element by element.
std::vector<uint8_t> moved(const Gather& op, int64_t n, const std::vector<uint8_t>& x) {
  std::vector<uint8_t> y;
  for (int64_t i = 0; i < n * op.output_size(); ++i) {
    int64_t rest = i / op.run;
    int64_t from = i % op.run;
    int64_t stride = op.run;
    bool filled = false;
    for (size_t k = op.axes.size(); k-- > 0;) {
      const auto places = static_cast<int64_t>(op.axes[k].index.size());
      const int64_t index = op.axes[k].index[static_cast<size_t>(rest % places)];
      filled = filled || index < 0;
      from += index * stride;
      stride *= op.axes[k].extent;
      rest /= places;
    }
    from += rest * stride;
    y.push_back(filled ? static_cast<uint8_t>(op.fill) : x[static_cast<size_t>(from)]);
  }
  return y;
}

std::vector<uint8_t> run_gather(const Gather& op, int64_t n, const std::vector<uint8_t>& x) {
  std::vector<uint8_t> y(static_cast<size_t>(n * op.output_size()));
  const uint8_t* const inputs[] = {x.data()};
  Prepared(op).run(n, inputs, y.data());
  return y;
}

}  // namespace

TEST_CASE("a gather equals (23) computed element by element", "[integer][gather]") {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<int64_t> extents;
    for (int64_t k = 0; k <= i % 4; ++k) extents.push_back(1 + random.below(k % 3 == 2 ? 40 : 7));
    const Shape shape(extents);
    const Gather op = Gather::make(shape, random_index(shape, random), i % 256);
    CAPTURE(i, shape);
    CHECK_NOTHROW(op.validate("gather"));
    CHECK(op.input_sizes() == std::vector<int64_t>{shape.elements()});
    const int64_t n = i % 4;
    const std::vector<uint8_t> x = random_bytes(n * shape.elements(), static_cast<uint64_t>(i));
    const std::vector<uint8_t> expected = moved(op, n, x);
    if (i % 20 != 0) {
      REQUIRE(run_gather(op, n, x) == expected);
      continue;
    }
    for_each_isa(
        [&] { for_each_thread_count([&] { REQUIRE(run_gather(op, n, x) == expected); }); });
  }
}

TEST_CASE("a large gather gives the same result with any number of threads", "[integer][gather]") {
  // Some rows have more elements than a block, others have fewer.
  for (const Shape& shape : {Shape{3, 50000, 2}, Shape{700, 30, 9}}) {
    const int64_t last = shape[1] - 1;
    std::vector<int32_t> reversed{-1};
    for (int64_t i = last; i >= 0; --i) reversed.push_back(static_cast<int32_t>(i));
    for (const auto& index : {std::vector<std::vector<int32_t>>{{0, 0, 2}, reversed, {}},
                              std::vector<std::vector<int32_t>>{{}, reversed, {1, 0}}}) {
      const Gather op = Gather::make(shape, index, 3);
      const std::vector<uint8_t> x = random_bytes(2 * shape.elements(), 5);
      const std::vector<uint8_t> expected = moved(op, 2, x);
      for_each_thread_count([&] { CHECK((run_gather(op, 2, x) == expected)); });
    }
  }
}

TEST_CASE("unchanged leading and trailing axes become rows and runs", "[integer][gather]") {
  const Gather columns = Gather::make({5, 6, 7, 2}, {{}, {}, {3, 4}, {}}, 9);
  CHECK(columns == Gather{30, {{7, {3, 4}}}, 9, 2});
  const Gather between = Gather::make({2, 3, 4}, {{1}, {}, {0, 0}}, 0);
  CHECK(between == Gather{1, {{2, {1}}, {3, {0, 1, 2}}, {4, {0, 0}}}, 0, 1});
  CHECK(columns.x_row() == 14);
  CHECK(columns.y_row() == 4);
  CHECK_FALSE(columns.fills());
  CHECK(Gather::make({2}, {{0, -1}}, 0).fills());
}

TEST_CASE("runs are as long as possible", "[integer][gather]") {
  const auto runs = gather_runs({6, {-1, -1, 2, 3, 3, 1, 0, -1}}, 4);
  const std::vector<std::pair<int64_t, int64_t>> expected = {
      {-1, 8}, {8, 8}, {12, 4}, {4, 4}, {0, 4}, {-1, 4}};
  REQUIRE(runs.size() == expected.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    CHECK(runs[i].from == expected[i].first);
    CHECK(runs[i].length == expected[i].second);
  }
}

TEST_CASE("a gather refuses invalid extents, indices and fills", "[integer][gather]") {
  const auto make = [] { return Gather::make({2, 3, 4}, {{1, -1}, {2, 0}, {}}, 7); };
  CHECK_NOTHROW(make().validate("layer"));
  const auto check = [&](auto* type, const char* text, const std::function<void(Gather&)>& change) {
    using Type = std::decay_t<decltype(*type)>;
    Gather op = make();
    change(op);
    QUANTRAIN_CHECK_ERROR(op.validate("layer"), Type, text);
  };
  ShapeError* const shape = nullptr;
  QuantError* const quant = nullptr;
  check(
      shape, "[layer] a gather along 0 axes, expected 1 to 8", [](Gather& op) { op.axes.clear(); });
  check(shape, "[layer] a gather along 9 axes", [](Gather& op) { op.axes.resize(9, {1, {0}}); });
  check(shape, "[layer] extent 0 is not positive", [](Gather& op) { op.rows = 0; });
  check(shape, "[layer] extent -4 is not positive", [](Gather& op) { op.run = -4; });
  check(shape, "[layer] extent 0 is not positive", [](Gather& op) { op.axes[1].extent = 0; });
  check(shape, "[layer] extent 0 is not positive", [](Gather& op) { op.axes[1].index.clear(); });
  const char* const more = "[layer] a value has more than 1073741824 elements";
  check(shape, more, [](Gather& op) { op.rows = op.run = int64_t{1} << 40; });
  check(shape, more, [](Gather& op) { op.axes[0].extent = int64_t{1} << 62; });
  check(shape, more, [](Gather& op) { op.run = (int64_t{1} << 30) / 5; });
  // Here only y is too large.
  check(shape, more, [](Gather& op) {
    op.run = int64_t{1} << 20;
    op.axes[0].index.assign(2048, 0);
  });
  check(shape, "[layer] index 2 is outside axis 0, which has 2 elements", [](Gather& op) {
    op.axes[0].index[1] = 2;
  });
  check(shape, "[layer] index -2 is outside axis 1, which has 3 elements", [](Gather& op) {
    op.axes[1].index[0] = -2;
  });
  check(shape, "[layer] all indices of axis 0 are -1: nothing is taken from x", [](Gather& op) {
    op.axes[0].index = {-1};
  });
  check(quant, "[layer] the fill 256 is not in [0, 255]", [](Gather& op) { op.fill = 256; });
  check(quant, "[layer] the fill -1 is not in [0, 255]", [](Gather& op) { op.fill = -1; });
}

TEST_CASE("a program refuses a fill that is not one of its codes", "[integer][gather]") {
  const auto program = [](int32_t fill, const std::vector<int32_t>& index) {
    Builder b;
    const int x = b.input({3}, kY);
    b.program.outputs = {b.codes(
        "moved", Gather::make({3}, {index}, fill), {x}, {static_cast<int64_t>(index.size())}, kY)};
    return b.program;
  };
  CHECK_NOTHROW(validate(program(15, {0, -1})));
  CHECK_NOTHROW(validate(program(16, {0, 2})));  // no element is filled
  QUANTRAIN_CHECK_ERROR(validate(program(16, {0, -1})),
                        GraphError,
                        "[moved] gives stored codes in [0, 16], but its value is ");
}

TEST_CASE("the ranges of gathered codes hold for every input", "[integer][gather]") {
  // The tables give the channels known ranges: one code, two codes, or any code.
  Builder b;
  const int x = b.input({2, 3, 4}, kX);
  QuantizedLookup tables{.size = 24, .table = {}};
  for (int c = 0; c < 4; ++c) {
    for (int q = 0; q < 256; ++q)
      tables.table.push_back(static_cast<uint8_t>(c == 3 ? q : 10 * c + (c == 2 ? q % 2 : 0)));
  }
  const int y = b.codes("tables", tables, {x}, {2, 3, 4}, kX);
  const auto move = [&](const std::vector<std::vector<int32_t>>& index, const Shape& shape) {
    return b.codes("move", Gather::make({2, 3, 4}, index, 7), {y}, shape, kX);
  };
  const int pixels = move({{1, 0}, {2, 0}, {}}, {2, 2, 4});
  const int padded = move({{-1, 0}, {}, {}}, {2, 3, 4});
  const int channels = move({{}, {}, {2, 0, -1}}, {2, 3, 3});
  const int flat = b.codes("flat", Gather{1, {{24, {5, 0}}}, 0, 1}, {y}, {2}, kX);
  b.program.outputs = {pixels, padded, channels, flat};
  const CodeRanges ranges(b.program);
  CHECK(ranges.at(pixels) == ranges.at(y));
  CHECK(ranges.at(padded) == Channels{{0, 7}, {7, 10}, {7, 21}, {0, 255}});
  CHECK(ranges.at(channels) == Channels{{7, 21}, {0, 7}, {7, 7}});
  CHECK(ranges.at(flat) == Channels{{0, 255}});
}

TEST_CASE("dead channels before a gather are removed if it moves pixels, kept if it moves channels",
          "[integer][gather][dead_channels]") {
  const auto program = [](const std::vector<std::vector<int32_t>>& index, const Shape& shape) {
    Builder b;
    const int x = b.input({2, 3, 4}, kX);
    // The second output has weights of 0, so it is the same code for every input.
    test::RandomProduct p({.outputs = 4, .length = 4, .x = kX}, 1);
    std::vector<int8_t> weight = p.product.weight.values();
    std::fill(weight.begin() + 4, weight.begin() + 8, int8_t{0});
    p.product.weight = weight;
    const int y = b.codes("fc", QuantizedLinear{6, 4, 4, p.behind(kX)}, {x}, {2, 3, 4}, kX);
    const int moved = b.codes("moved", Gather::make({2, 3, 4}, index, 7), {y}, shape, kX);
    const int64_t size = shape.elements();
    const test::RandomProduct last({.outputs = 3, .length = size, .x = kX}, 2);
    b.program.outputs = {
        b.accumulators("last", QuantizedLinear{1, size, 3, last.product}, {moved}, {3}, {0.5})};
    return b.program;
  };
  const auto check = [](const Program& before, bool shrinks) {
    const Program after = remove_dead_channels(before);
    CHECK((size_bytes(after) < size_bytes(before)) == shrinks);
    const std::vector<uint8_t> x = random_bytes(5 * 24, 8);
    std::vector<int32_t> expected(15), y(15);
    IntegerModel(before).run_codes(x, expected);
    IntegerModel(after).run_codes(x, y);
    CHECK(y == expected);
  };
  check(program({{1, 0, 0}, {}, {}}, {3, 3, 4}), true);
  check(program({{}, {}, {3, 1, 1}}, {2, 3, 3}), false);
}

}  // namespace quantrain::integer
