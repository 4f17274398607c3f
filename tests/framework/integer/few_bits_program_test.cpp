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

using test::Builder;
using test::kX;
using test::RandomProduct;

const QParams kBit{{.bits = 1}, -1, {0.5f}, {0}};

/// Images of bits, a convolution to bits, and a linear layer, with weights of 1 bit.
Program binary(int64_t x_bits) {
  Builder b;
  int x = b.input({6, 5, 40}, kBit);
  const kernels::Conv2dShape s{
      .h = 6, .w = 5, .c = 40, .o = 24, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  RandomProduct conv(
      {.outputs = 24, .length = s.reduction(), .x = kBit, .weight_bits = 1, .bias = false}, 1);
  conv.product.x_bits = x_bits;
  x = b.codes("conv", QuantizedConv2d{s, conv.behind(kBit)}, {x}, {6, 5, 24}, kBit);
  RandomProduct out({.outputs = 10, .length = 720, .x = kBit, .weight_bits = 1}, 2);
  out.product.x_bits = x_bits;
  b.program.outputs = {
      b.accumulators("out", QuantizedLinear{1, 720, 10, out.product}, {x}, {10}, out.scale)};
  return b.program;
}

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
