#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/kernels/integer_testing.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::integer {
namespace {

using test::binary;
using test::Builder;
using test::kBit;
using test::kX;
using test::RandomProduct;

std::vector<int32_t> sums(const IntegerModel& model, const std::vector<uint8_t>& x) {
  std::vector<int32_t> y(x.size() / 1200 * 10);
  model.run_codes(x, y);
  return y;
}

/// Two convolutions and a linear layer, of 4, 2 and 1 bits.
Program shrinking() {
  Builder b;
  int x = b.input({9, 9, 5}, kX);
  kernels::Conv2dShape s{.h = 9, .w = 9, .c = 5, .o = 20, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  for (const int bits : {4, 2}) {
    const RandomProduct p({.outputs = s.o, .length = s.reduction(), .x = kX, .weight_bits = bits},
                          1);
    x = b.codes("conv", QuantizedConv2d{s, p.behind(kX)}, {x}, {s.oh(), s.ow(), s.o}, kX);
    s = {.h = 9, .w = 9, .c = 20, .o = 66, .kh = 3, .kw = 3, .stride_h = 2, .stride_w = 2};
  }
  const RandomProduct p({.outputs = 33, .length = 16 * 66, .x = kX, .weight_bits = 1}, 1);
  b.program.outputs = {
      b.accumulators("out", QuantizedLinear{1, 16 * 66, 33, p.product}, {x}, {33}, p.scale)};
  return b.program;
}

/// A linear layer with more weights than the second-level cache holds.
QuantizedLinear large(int bits) {
  const RandomProduct p({.outputs = 1027, .length = 2053, .x = kX, .weight_bits = bits}, 3);
  return {1, 2053, 1027, p.product};
}

}  // namespace

TEST_CASE("networks of 1 bit give the integers of the 8-bit kernels, before and after saving",
          "[integer][few_bits]") {
  const quantrain::test::TemporaryFolder folder;
  const std::vector<uint8_t> x = test::random_codes(3 * 1200, kBit, 4);
  const Program program = binary(1);
  const std::vector<int32_t> expected = sums(IntegerModel(binary(8)), x);
  quantrain::test::for_each_isa([&] {
    const IntegerModel model(program);
    CHECK(sums(model, x) == expected);
    const auto counts =
        kernels::PackedWeightsS8::planned({.c = 40, .o = 24, .kh = 3, .kw = 3}, {1, true, true})
            .layout()
            .few == kernels::FewBits::kBits;
    CHECK(kernel(program.steps[0].operation) == (counts ? "conv2d_u1s1_u8" : "conv2d_u8s8_u8"));
    CHECK(kernel(program.steps[1].operation) == (counts ? "gemm_u1s1_s32" : "gemm_u8s8_s32"));
    model.save(folder / "model");
    const IntegerModel loaded = IntegerModel::load(folder / "model");
    CHECK(loaded.program() == program);
    CHECK(sums(loaded, x) == expected);
  });
}

TEST_CASE("products of bits refuse inputs of more bits", "[integer][few_bits]") {
  Program program = binary(1);
  program.values[0].params->type.bits = 2;
  QUANTRAIN_CHECK_ERROR(
      validate(program), GraphError, "[conv] expects codes of 1 bit, but the value has type u2");
  QuantizedLinear op = std::get<QuantizedLinear>(binary(1).steps[1].operation);
  op.product.x_bits = 4;
  QUANTRAIN_CHECK_ERROR(op.validate("op"), QuantError, "[op] x_bits is 1 or 8, got 4");
}

TEST_CASE("inputs of 1 bit refuse other codes than 0 and 1", "[integer][few_bits]") {
  std::vector<uint8_t> x = test::random_codes(3 * 1200, kBit, 4);
  x[2500] = 255;
  for (const int64_t x_bits : {1, 8}) {
    quantrain::test::for_each_isa([&] {
      const IntegerModel model(binary(x_bits));
      QUANTRAIN_CHECK_ERROR(
          sums(model, x), DataError, "input \"input0\" takes codes of 1 bit, 0 and 1, got 255");
      const uint8_t* const codes[] = {x.data()};
      CHECK_THROWS_AS(model.trace(3, codes, [](size_t, const void*) {}), DataError);
      CHECK_NOTHROW(model.trace(2, codes, [](size_t, const void*) {}));
    });
  }
}

TEST_CASE("panels of few bits give the weights back on every instruction set",
          "[integer][few_bits]") {
  const QuantizedLinear four = large(4);
  const QuantizedLinear two = large(2);
  const Program bits = binary(1);
  const auto& conv = std::get<QuantizedConv2d>(bits.steps[0].operation);
  quantrain::test::for_each_isa([&] {
    for (const QuantizedLinear* const op : {&four, &two}) {
      const int width = op->product.weight.bits();
      const Constant panels = op->product.weight.in_panels(op->weights());
      CHECK(panels == op->product.weight);
      const std::string_view name = kernel(*op);
      if (name == "gemm_u8s8_s32") continue;
      CHECK(name == (width == 4 ? "gemm_u8s4_s32" : "gemm_u8s2_s32"));
      // Panels hold whole groups and whole vectors of outputs.
      CHECK(100 * panels.stored_bytes() < 108 * packed_bytes(panels.size(), width));
      CHECK(100 * op->prepared_bytes() < 109 * packed_bytes(panels.size(), width));
    }
    CHECK(conv.product.weight.in_panels(conv.weights(), true) == conv.product.weight);
  });
}

TEST_CASE("models that keep their weights small give the same integers on every instruction set",
          "[integer][few_bits]") {
  const quantrain::test::TemporaryFolder folder;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Program program = seed == 0   ? binary(1)
                            : seed == 1 ? shrinking()
                                        : test::random_program(seed);
    std::vector<std::vector<uint8_t>> x;
    std::vector<std::span<const uint8_t>> inputs;
    for (const int id : program.inputs) {
      const Value& value = program.value(id);
      x.push_back(test::random_codes(20 * value.shape.elements(), *value.params, seed));
    }
    for (const auto& codes : x) inputs.emplace_back(codes);
    const auto run = [&](const IntegerModel& model) {
      std::vector<std::vector<int32_t>> y;
      std::vector<std::span<int32_t>> outputs;
      for (size_t i = 0; i < model.output_count(); ++i)
        y.emplace_back(static_cast<size_t>(20 * model.output_size(i)));
      for (auto& integers : y) outputs.emplace_back(integers);
      model.run_codes(inputs, outputs);
      return y;
    };
    const auto expected = run(IntegerModel(program));
    IntegerModel(program).save(folder / "model");
    const IntegerModel other = IntegerModel::load(folder / "model", {}, KeepWeights::kSmall);
    quantrain::test::for_each_isa([&] {
      CAPTURE(seed);
      const IntegerModel small(program, KeepWeights::kSmall);
      CHECK(small.keeps() == KeepWeights::kSmall);
      CHECK(small.program() == program);
      CHECK(small.hash() == content_hash(program));
      CHECK(run(small) == expected);
      CHECK(run(other) == expected);  // packed for another instruction set
      CHECK(small.kept_bytes() <= IntegerModel(program).kept_bytes());
    });
  }
}

TEST_CASE("models that keep their weights small name their kernels", "[integer][few_bits]") {
  Builder b;
  const int x = b.input({64}, kX);
  for (const int bits : {5, 4, 3, 2, 1}) {
    const RandomProduct p({.outputs = 64, .length = 64, .x = kX, .weight_bits = bits}, 1);
    b.program.outputs.push_back(
        b.accumulators("fc", QuantizedLinear{1, 64, 64, p.product}, {x}, {64}, p.scale));
  }
  const std::string names[] = {
      "gemm_u8s8_s32", "gemm_u8s4_s32", "gemm_u8s4_s32", "gemm_u8s2_s32", "gemm_u8s1_s32"};
  const Program small = IntegerModel(b.program, KeepWeights::kSmall).program();
  for (size_t i = 0; i < 5; ++i) {
    CHECK(kernel(small.steps[i].operation) == names[i]);
    CHECK(kernel(b.program.steps[i].operation) == "gemm_u8s8_s32");
  }
  // A model that is made from it does not inherit the choice.
  CHECK(kernel(IntegerModel(small).program().steps[4].operation) == "gemm_u8s8_s32");
}

TEST_CASE("models keep weights fast or small, and nothing else", "[integer][few_bits]") {
  QUANTRAIN_CHECK_ERROR(IntegerModel(binary(1), static_cast<KeepWeights>(7)),
                        DataError,
                        "[IntegerModel] keeps weights fast or small, got 7");
}

}  // namespace quantrain::integer
