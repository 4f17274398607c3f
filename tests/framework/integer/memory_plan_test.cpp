#include "framework/integer/memory_plan.hpp"

#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/memory_taken.hpp"

namespace quantrain::integer {
namespace {

using test::Builder;
using test::kSigned;
using test::kX;
using test::kY;
using test::random_program;
using test::RandomProduct;

/// Memory that knows which value wrote each byte last.
class Memory {
 public:
  Memory(const Program& program, const MemoryPlan& plan, int64_t n)
      : program_(program),
        plan_(plan),
        n_(n),
        owner_(static_cast<size_t>(n * plan.sample_bytes), -1) {}

  int64_t begin(int id) const { return plan_.offset(id, n_); }
  int64_t end(int id) const {
    const Value& value = program_.value(id);
    return begin(id) + n_ * value.shape.elements() * (value.is_codes() ? 1 : 4);
  }
  void write(int id) {
    REQUIRE(begin(id) >= 0);
    REQUIRE(end(id) <= static_cast<int64_t>(owner_.size()));
    for (int64_t i = begin(id); i < end(id); ++i) owner_[static_cast<size_t>(i)] = id;
  }
  /// Whether every byte was last written by this value, or by the value that it is a view of.
  bool holds(int id) const {
    const int root = plan_.roots[static_cast<size_t>(id)];
    for (int64_t i = begin(id); i < end(id); ++i) {
      if (owner_[static_cast<size_t>(i)] != root) return false;
    }
    return true;
  }

 private:
  const Program& program_;
  const MemoryPlan& plan_;
  int64_t n_;
  std::vector<int> owner_;
};

/// Simulates the program on a Memory, without computing. When a step reads a value, all of the
/// value's bytes must still be there.
void check_plan(const Program& program, int64_t n) {
  const MemoryPlan plan = plan_memory(program);
  REQUIRE(plan.roots.size() == program.values.size());
  REQUIRE(plan.offsets.size() == program.values.size());
  for (const int64_t offset : plan.offsets) CHECK(offset % 64 == 0);
  CHECK(plan.sample_bytes % 64 == 0);
  Memory memory(program, plan, n);
  for (const int id : program.inputs) memory.write(id);
  // All inputs are written before the first step runs. No input may overwrite another one that is
  // read.
  for (const int id : program.inputs) {
    bool read = false;
    for (const Step& step : program.steps)
      read = read || std::count(step.inputs.begin(), step.inputs.end(), id) > 0;
    read = read || std::count(program.outputs.begin(), program.outputs.end(), id) > 0;
    if (read) CHECK(memory.holds(id));
  }
  for (const Step& step : program.steps) {
    for (const int id : step.inputs) CHECK(memory.holds(id));
    const int y = step.output;
    if (std::holds_alternative<View>(step.operation)) {
      const auto input = static_cast<size_t>(step.inputs[0]);
      CHECK(plan.roots[static_cast<size_t>(y)] == plan.roots[input]);
      CHECK(plan.offsets[static_cast<size_t>(y)] == plan.offsets[input]);
      continue;
    }
    CHECK(plan.roots[static_cast<size_t>(y)] == y);
    for (const int id : step.inputs) {
      const bool apart = memory.end(id) <= memory.begin(y) || memory.end(y) <= memory.begin(id);
      const bool in_place = runs_in_place(step.operation) && memory.begin(id) == memory.begin(y) &&
                            memory.end(id) == memory.end(y);
      CHECK((apart || in_place));
    }
    memory.write(y);
  }
  for (const int id : program.outputs) CHECK(memory.holds(id));
}

QuantizedLookup lookup(int64_t size) {
  return QuantizedLookup::rescale(size, kX, kX, Activation::kRelu);
}

}  // namespace

TEST_CASE("values that are alive at the same time do not share memory", "[integer][memory_plan]") {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Program program = random_program(seed);
    check_plan(program, 1);
    check_plan(program, 3);
  }
  check_plan(test::every_operation(), 2);
  check_plan(test::mlp(), 2);
}

TEST_CASE("a lookup runs in place if nothing reads its input afterwards",
          "[integer][memory_plan]") {
  Builder b;
  const int x = b.input({100}, kX);
  const int y = b.codes("y", lookup(100), {x}, {100}, kX);
  const int z = b.codes("z", lookup(100), {y}, {100}, kX);
  SECTION("a chain takes one place") {
    b.program.outputs = {z};
    const MemoryPlan plan = plan_memory(b.program);
    CHECK(plan.offsets == std::vector<int64_t>{0, 0, 0});
    CHECK(plan.sample_bytes == 128);
    CHECK(plan.offset(z, 7) == 0);
  }
  SECTION("an output is not overwritten") {
    b.program.outputs = {z, y};
    const MemoryPlan plan = plan_memory(b.program);
    CHECK(plan.offsets == std::vector<int64_t>{0, 0, 128});
    CHECK(plan.sample_bytes == 256);
    CHECK(plan.offset(z, 7) == 7 * 128);
  }
  SECTION("a value is not overwritten if it is read later, directly or through a view") {
    const int view = b.codes("view", View{100}, {x}, {10, 10}, kX);
    b.program.outputs = {z, view};
    const MemoryPlan plan = plan_memory(b.program);
    CHECK(plan.offsets == std::vector<int64_t>{0, 128, 128, 0});
    CHECK(plan.roots == std::vector<int>{x, y, z, x});
  }
  check_plan(b.program, 4);
}

TEST_CASE("an addition takes the place of an operand that nothing reads afterwards",
          "[integer][memory_plan]") {
  const auto add = QuantizedAdd::make(70, {kX, kSigned}, kY, Activation::kNone);
  Builder b;
  const int a = b.input({70}, kX);
  const int c = b.input({70}, kSigned);
  const int sum = b.codes("sum", add, {a, c}, {70}, kY);
  SECTION("the first operand") {
    b.program.outputs = {sum, c};
    CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 128, 0});
  }
  SECTION("the second operand") {
    b.program.outputs = {sum, a};
    CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 128, 128});
  }
  SECTION("neither operand") {
    b.program.outputs = {sum, a, c};
    CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 128, 256});
    CHECK(plan_memory(b.program).sample_bytes == 384);
  }
  check_plan(b.program, 2);
}

TEST_CASE("a product takes the place of an operand of equal size, not that of channel factors",
          "[integer][memory_plan]") {
  Builder b;
  const int a = b.input({35, 2}, kX);
  const int factors = b.input({2}, kSigned);
  const int squares = b.input({70}, kX);
  const auto scaled = QuantizedMul::make(35, 2, kX, kSigned, kY, Activation::kNone);
  const auto product = QuantizedMul::make(1, 70, kY, kX, kY, Activation::kNone);
  const int y = b.codes("y", scaled, {a, factors}, {35, 2}, kY);
  const int z = b.codes("z", product, {y, squares}, {70}, kY);
  SECTION("the first operand") {
    b.program.outputs = {z};
    CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 128, 192, 0, 0});
  }
  SECTION("the second operand") {
    b.program.outputs = {z, y};
    CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 128, 192, 0, 192});
  }
  SECTION("neither operand") {
    b.program.outputs = {z, a, squares};
    CHECK(plan_memory(b.program).offsets == std::vector<int64_t>{0, 128, 192, 320, 320});
    CHECK(plan_memory(b.program).sample_bytes == 448);
  }
  check_plan(b.program, 1);
  check_plan(b.program, 3);
}

TEST_CASE("the memory of dead values is reused", "[integer][memory_plan]") {
  // Pools do not run in place, so they use two places in turn.
  Builder b;
  int x = b.input({1, 64, 1}, kX);
  for (int i = 0; i < 10; ++i) {
    const QuantizedMaxPool2d pool{test::pool_shape(1, 64, 1, 1, 1, 0)};
    x = b.codes("pool", pool, {x}, {1, 64, 1}, kX);
  }
  b.program.outputs = {x};
  const MemoryPlan plan = plan_memory(b.program);
  CHECK(plan.sample_bytes == 128);
  for (size_t i = 0; i < plan.offsets.size(); ++i) CHECK(plan.offsets[i] == (i % 2 == 0 ? 0 : 64));
  check_plan(b.program, 1);
}

TEST_CASE("accumulators take four bytes each", "[integer][memory_plan]") {
  Builder b;
  const int x = b.input({3}, kX);
  const RandomProduct p({.outputs = 17, .length = 3, .x = kX}, 1);
  b.program.outputs = {
      b.accumulators("sums", QuantizedLinear{1, 3, 17, p.product}, {x}, {17}, p.scale)};
  const MemoryPlan plan = plan_memory(b.program);
  CHECK(plan.offsets == std::vector<int64_t>{0, 64});
  CHECK(plan.sample_bytes == 64 + 128);
}

/// The checks leave room for the memory pool: it adds pool::kSlack bytes to the requested size,
/// takes at least 256 bytes, and rounds up by at most a quarter.
TEST_CASE("a run takes the memory that was planned, and no more", "[integer][memory_plan]") {
  const kernels::Conv2dShape padded{
      .h = 40, .w = 40, .c = 8, .o = 8, .kh = 5, .kw = 5, .pad_h = 2, .pad_w = 2};
  const kernels::Conv2dShape deep{
      .h = 40, .w = 40, .c = 24, .o = 24, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 24};
  kernels::Conv2dShape blocks = deep;
  blocks.c = blocks.o = blocks.groups = 160;
  blocks.kh = blocks.kw = 5;
  kernels::Conv2dShape few = deep;
  few.c = few.o = few.groups = 3;
  const kernels::Conv2dShape strided{.h = 30,
                                     .w = 30,
                                     .c = 8,
                                     .o = 4,
                                     .kh = 1,
                                     .kw = 1,
                                     .stride_h = 7,
                                     .stride_w = 7,
                                     .groups = 2};
  kernels::Conv2dShape dilated = padded;
  dilated.dilation_h = dilated.dilation_w = 3;
  kernels::Conv2dShape dilated_deep = deep;
  dilated_deep.dilation_h = dilated_deep.dilation_w = 3;
  std::vector<Program> programs{test::mlp(13, 9, 4), test::every_operation()};
  for (const kernels::Conv2dShape& shape :
       {padded, deep, blocks, few, strided, dilated, dilated_deep}) {
    programs.push_back(test::convolution(shape));
  }
  Builder b;
  const auto window = test::pool_shape(64, 64, 16, 2, 2, 1);
  const int x = b.input({64, 64, 16}, kX);
  const auto mean = QuantizedAvgPool2d::make(window, kX, kY, Activation::kNone);
  b.program.outputs = {b.codes("mean", mean, {x}, {33, 33, 16}, kY)};
  programs.push_back(b.program);

  for (size_t i = 0; i < programs.size(); ++i) {
    const IntegerModel model(programs[i]);
    for (const int64_t n : {1, 3, 40}) {
      CAPTURE(i, n);
      std::vector<std::vector<uint8_t>> inputs;
      std::vector<std::vector<int32_t>> outputs;
      std::vector<std::span<const uint8_t>> from;
      std::vector<std::span<int32_t>> to;
      for (size_t k = 0; k < model.input_count(); ++k)
        inputs.emplace_back(static_cast<size_t>(n * model.input_shape(k).elements()));
      for (size_t k = 0; k < model.output_count(); ++k)
        outputs.emplace_back(static_cast<size_t>(n * model.output_size(k)));
      for (const auto& bytes : inputs) from.emplace_back(bytes);
      for (auto& integers : outputs) to.emplace_back(integers);
      // Runs in a process that has not yet allocated memory for a run.
      const quantrain::test::Child child = quantrain::test::in_child([&] {
        const int64_t taken = quantrain::test::memory_taken([&] { model.run_codes(from, to); });
        const int64_t planned = memory(programs[i], n);
        if (taken > planned + planned / 4 + 4096) return "more: " + std::to_string(taken);
        if (planned > 2 * taken) return "less: " + std::to_string(taken);
        return std::string("as planned");
      });
      CHECK(child.text == "as planned");
    }
  }
}

}  // namespace quantrain::integer
