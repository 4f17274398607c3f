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
using test::kBit;
using test::kX;
using test::RandomProduct;

std::vector<int32_t> sums(const IntegerModel& model, const std::vector<uint8_t>& x) {
  std::vector<int32_t> y(x.size() / 1200 * 10);
  model.run_codes(x, y);
  return y;
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

}  // namespace quantrain::integer
