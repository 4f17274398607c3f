#include "framework/integer/program_constants.hpp"

#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/integer/memory_plan.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/integer/saved_program.hpp"
#include "tests/framework/kernels/integer_testing.hpp"

namespace quantrain::integer {
namespace {

using test::Builder;
using test::edit;
using test::every_operation;
using test::Json;
using test::kX;
using test::random_codes;
using test::RandomProduct;
using test::SavedProgram;
using namespace test::every;

/// A chain of linear layers with the same weights and biases, like the unrolled steps of a
/// recurrent network. Each layer has its own arrays.
Program unrolled(int steps, int64_t size, int bits, bool same = true, const QParams& params = kX) {
  Builder b;
  int x = b.input({size}, params);
  for (int i = 0; i < steps; ++i) {
    RandomProduct p({.outputs = size, .length = size, .x = params, .weight_bits = bits},
                    same ? 1 : static_cast<uint64_t>(i));
    p.product.x_bits = params.type.bits == 1 ? 1 : 8;
    x = b.codes("step" + std::to_string(i),
                QuantizedLinear{1, size, size, p.behind(params)},
                {x},
                {size},
                params);
  }
  b.program.outputs = {x};
  return b.program;
}

const QuantizedProduct& product_at(const Program& program, size_t step) {
  return *product(program.steps.at(step).operation);
}

std::vector<int32_t> run(const IntegerModel& model) {
  const std::vector<uint8_t> x = random_codes(2 * model.input_shape().elements(), kX, 1);
  std::vector<int32_t> y(static_cast<size_t>(2 * model.output_size()));
  model.run_codes(x, y);
  return y;
}

}  // namespace

TEST_CASE("codes are packed bit by bit, from the lowest bit on", "[integer][constants]") {
  // One bit: 1 for +1, 0 for -1.
  CHECK(pack_codes(std::vector<int8_t>{1, -1, -1, 1, 1, -1, -1, -1, 1}, 1) ==
        std::vector<uint8_t>{0x19, 0x01});
  CHECK(pack_codes(std::vector<int8_t>{1, -2, 1, -1, 0}, 2) == std::vector<uint8_t>{0xd9, 0x00});
  // 1, -1, 3 and -4 are 001, 111, 011 and 100: byte 0 is 11'111'001, byte 1 is 0000'100'0.
  CHECK(pack_codes(std::vector<int8_t>{1, -1, 3, -4}, 3) == std::vector<uint8_t>{0xf9, 0x08});
  CHECK(pack_codes(std::vector<int8_t>{1, -2, 7}, 4) == std::vector<uint8_t>{0xe1, 0x07});
  // 15 and -16 are 01111 and 10000.
  CHECK(pack_codes(std::vector<int8_t>{15, -16}, 5) == std::vector<uint8_t>{0x0f, 0x02});
  CHECK(pack_codes(std::vector<int8_t>{-128, 127}, 8) == std::vector<uint8_t>{0x80, 0x7f});
  CHECK(pack_codes({}, 3).empty());
  CHECK(packed_bytes(0, 3) == 0);
  CHECK(packed_bytes(8, 3) == 3);
  CHECK(packed_bytes(9, 3) == 4);
  CHECK(packed_bytes(8, 7) == 7);
}

TEST_CASE("constants give the same integers however they are stored", "[integer][constants]") {
  const kernels::Conv2dShape shape{.c = 4, .o = 9, .kh = 3, .kw = 2, .groups = 1};
  for (int bits = 1; bits <= 8; ++bits) {
    CAPTURE(bits);
    const RandomProduct p({.outputs = 9, .length = 24, .x = kX, .weight_bits = bits}, 3);
    const Constant& plain = p.product.weight;
    const std::vector<int8_t> values = plain.values();
    const Constant packed = plain.as_packed(), panels = packed.in_panels(shape);
    CHECK(packed.stored_bytes() == (216 * bits + 7) / 8);
    for (const Constant& constant : {packed, panels}) {
      CHECK(constant == plain);
      CHECK(constant.bits() == bits);
      CHECK(constant.values() == values);
      CHECK(constant.packed() == plain.packed());
      for (int64_t first = 0; first < 9; ++first) {
        std::vector<int8_t> part(10);
        constant.copy(first, 10, part.data());
        CHECK(part == std::vector<int8_t>(values.begin() + first, values.begin() + first + 10));
      }
    }
    std::vector<int8_t> other = values;
    other.back() = static_cast<int8_t>(bits == 1 ? -other.back() : other.back() == 0 ? 1 : 0);
    CHECK_FALSE(Constant(other, bits) == packed);
    if (bits > 1 && bits < 8) CHECK_FALSE(Constant(values, bits + 1) == packed);
    CHECK(panels.panels(shape) == panels.panels(shape));  // no new ones
    CHECK_FALSE(panels.panels(shape) == panels.panels({.c = 24, .o = 9}));
  }
}

TEST_CASE("a program stores equal weights and biases once", "[integer][constants]") {
  for (const int bits : {1, 2, 3, 8}) {
    CAPTURE(bits);
    const Program separate = unrolled(16, 20, bits);
    const SavedProgram saved(separate);
    const TensorFile file = load_safetensors(saved.path());
    CHECK(file.values<uint8_t>("constants.0").size() == static_cast<size_t>(400 * bits / 8));
    CHECK(file.values<int32_t>("constants.1").size() == 20);
    CHECK_FALSE(file.contains("constants.2"));
    const Program loaded = load_program(saved.path());
    CHECK(loaded == separate);
    CHECK(content_hash(loaded) == content_hash(separate));
    for (size_t i = 1; i < 16; ++i) {
      CHECK(product_at(loaded, i).weight.id() == product_at(loaded, 0).weight.id());
      CHECK(product_at(loaded, i).bias.data() == product_at(loaded, 0).bias.data());
    }
    // 20 multipliers and shifts in each step.
    CHECK(size_bytes(separate) == 17 * 8 + 400 * bits / 8 + 80 + 16 * 20 * 5);
    CHECK(size_bytes(loaded) == size_bytes(separate));
    const Program different = unrolled(16, 20, bits, false);
    CHECK(size_bytes(different) == 17 * 8 + 16 * (400 * bits / 8 + 80 + 20 * 5));
  }
}

TEST_CASE("the steps of a model share the panels of equal weights", "[integer][constants]") {
  const Program program = unrolled(16, 20, 4);
  const IntegerModel model(program);
  for (size_t i = 1; i < 16; ++i)
    CHECK(product_at(model.program(), i).weight.id() == product_at(model.program(), 0).weight.id());
  CHECK(model.program() == program);
  CHECK(model.hash() == content_hash(program));
  // The model neither keeps nor changes the integers that it was made from.
  CHECK(product_at(program, 1).weight.id() != product_at(program, 0).weight.id());
  CHECK(product_at(program, 0).weight.values() == product_at(model.program(), 0).weight.values());
  // Fewer bytes than two copies of all panels take.
  const int64_t shared = prepared_bytes(program.steps[0].operation) +
                         15 * kernels::ProductParams::bytes(
                                  kernels::PackedWeightsS8::planned({.c = 20, .o = 20}), true);
  CHECK_NOTHROW(check_memory(load_program(SavedProgram(program).path()), shared + 4096));
  CHECK_THROWS_AS(check_memory(program, shared + 4096), DataError);
}

TEST_CASE("a model keeps one copy of what its kernels read for each output",
          "[integer][constants]") {
  const QParams plain{{.bits = 8}, -1, {0.02f}, {0}};
  Builder b;
  const RandomProduct a({.outputs = 21, .length = 9, .x = plain}, 1);
  const RandomProduct c({.outputs = 21, .length = 9, .x = kX}, 2);
  const int x = b.input({3, 3, 1}, plain);
  const kernels::Conv2dShape first{
      .h = 3, .w = 3, .c = 1, .o = 21, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  kernels::Conv2dShape depthwise = first;
  depthwise.c = depthwise.groups = 21;
  const int y =
      b.codes("first", QuantizedConv2d{first, a.behind(kX)}, {x}, {first.oh(), first.ow(), 21}, kX);
  depthwise.h = first.oh();
  depthwise.w = first.ow();
  const Shape z{depthwise.oh(), depthwise.ow(), 21};
  const int codes = b.codes("depthwise", QuantizedConv2d{depthwise, c.behind(kX)}, {y}, z, kX);
  const int flat = b.codes("flat", View{z.elements()}, {codes}, {z.elements()}, kX);
  const RandomProduct last({.outputs = 10, .length = z.elements(), .x = kX, .weight_bits = 1}, 3);
  b.program.outputs = {
      b.codes("last", QuantizedLinear{1, z.elements(), 10, last.behind(kX)}, {flat}, {10}, kX)};
  const Program usual = b.program;
  // The kernels take another shift for this multiplier, so the program keeps its shifts.
  QuantizedProduct& zero = *product(b.program.steps[3].operation);
  edit(zero.output->m0, [](auto& m0) { m0[4] = 0; });
  edit(zero.output->shift, [](auto& shift) { shift[4] = 62; });
  // They take 0 for this one, so the program keeps its multipliers, too.
  Program tiny = usual;
  edit(product(tiny.steps[3].operation)->output->shift, [](auto& shift) { shift[4] = 62; });
  const SavedProgram saved(b.program);
  quantrain::test::for_each_isa([&] {
    for (const KeepWeights keep : {KeepWeights::kFast, KeepWeights::kSmall}) {
      const IntegerModel model(b.program, keep);
      CHECK(model.program() == b.program);
      CHECK(quantrain::test::read_bytes(SavedProgram(model.program()).path()) ==
            quantrain::test::read_bytes(saved.path()));
      for (const size_t step : {size_t{0}, size_t{1}, size_t{3}}) {
        CAPTURE(step, isa_name(chosen_isa()));
        const QuantizedProduct& p = product_at(model.program(), step);
        const auto panels =
            p.weight.panels(weights_shape(model.program().steps[step].operation), p.is_binary());
        const int32_t* const m0 = p.output->m0.data();
        CHECK((p.output->shift.data() == m0 + panels->padded_entries()) == (step != 3));
        CHECK((p.bias.data() == m0 - panels->padded_entries()) ==
              (p.zero_x == panels->layout().offset));
      }
      CHECK(model.kept_bytes() == IntegerModel(usual, keep).kept_bytes() + 4 * 10);
      CHECK(IntegerModel(tiny, keep).program() == tiny);
      CHECK(IntegerModel(tiny, keep).kept_bytes() == model.kept_bytes() + 4 * 10);
      // The arrays outlive the model.
      Program program = b.program;
      { program = IntegerModel(b.program, keep).program(); }
      CHECK(program == b.program);
    }
  });
}

TEST_CASE("the limit of memory counts shared panels once, on every instruction set",
          "[integer][constants]") {
  const std::tuple<int, QParams> cases[] = {{1, test::kBit}, {1, kX}, {2, kX}, {4, kX}, {8, kX}};
  for (const auto& each : cases) {
    const int bits = std::get<0>(each);
    const QParams& params = std::get<1>(each);
    const Program program =
        load_program(SavedProgram(unrolled(16, 160, bits, true, params)).path());
    quantrain::test::for_each_isa([&] {
      CAPTURE(bits, params.type.bits, isa_name(chosen_isa()));
      // While the panels are made, the weights are plain bytes.
      const int64_t taken = plan_memory(program).sample_bytes +
                            prepared_bytes(program.steps[0].operation) +
                            15 * kernels::ProductParams::bytes(
                                     product_at(program, 0).planned({.c = 160, .o = 160}), true) +
                            160 * 160;
      CHECK_NOTHROW(check_memory(program, taken));
      CHECK_THROWS_AS(check_memory(program, taken - 1), DataError);
    });
  }
}

TEST_CASE("steps share panels only if their layouts are equal", "[integer][constants]") {
  const RandomProduct p({.outputs = 1025, .length = 2048, .x = kX, .weight_bits = 4, .bias = false},
                        1);
  Builder b;
  const int one = b.input({2048}, kX);
  const int many = b.input({24, 2048}, kX);
  const int pixels = b.input({1, 2, 2048}, kX);
  const kernels::Conv2dShape image{.h = 1, .w = 2, .c = 2048, .o = 1025};
  b.program.outputs = {
      b.accumulators("one", QuantizedLinear{1, 2048, 1025, p.product}, {one}, {1025}, p.scale),
      b.accumulators(
          "many", QuantizedLinear{24, 2048, 1025, p.product}, {many}, {24, 1025}, p.scale),
      b.accumulators("pixels", QuantizedConv2d{image, p.product}, {pixels}, {1, 2, 1025}, p.scale)};
  quantrain::test::for_each_isa([&] {
    const IntegerModel model(b.program);
    const auto few = [&](size_t step) {
      const Operation& op = model.program().steps[step].operation;
      const auto panels = product(op)->weight.panels(weights_shape(op));
      const int64_t rows = output_size(op) / 1025;
      CHECK(scratch_bytes(op, 1) == (std::holds_alternative<QuantizedLinear>(op)
                                         ? kernels::gemm_scratch(rows, *panels)
                                         : kernels::conv2d_scratch(weights_shape(op), *panels)));
      const auto plan = kernels::PackedWeightsS8::planned(weights_shape(op), product(op)->bits());
      CHECK(panels->layout().few == plan.layout().few);
      CHECK(panels == product(op)->weight.panels(weights_shape(op)));  // no new ones
      return plan.layout().few;
    };
    for (const size_t other : {size_t{1}, size_t{2}}) {
      const bool same = few(0) == few(other);
      CHECK((product_at(model.program(), 0).weight.id() ==
             product_at(model.program(), other).weight.id()) == same);
    }
  });
}

TEST_CASE("weights of equal bytes and different shapes have panels of their own",
          "[integer][constants]") {
  Builder b;
  const int x = b.input({24}, kX);
  const RandomProduct p({.outputs = 6, .length = 24, .x = kX, .bias = false}, 1);
  QuantizedProduct narrow = p.behind(kX);
  const int y = b.codes("a", QuantizedLinear{1, 24, 6, narrow}, {x}, {6}, kX);
  // The same 144 weights as [24, 6].
  narrow.output = requantization(std::vector<double>(24, p.scale[0]), kX, Activation::kNone);
  b.program.outputs = {b.codes("b", QuantizedLinear{1, 6, 24, narrow}, {y}, {24}, kX)};
  const IntegerModel model(b.program);
  CHECK(model.program() == b.program);
  CHECK(product_at(model.program(), 0).weight.id() != product_at(model.program(), 1).weight.id());
  const SavedProgram saved(b.program);
  CHECK_FALSE(load_safetensors(saved.path()).contains("constants.1"));
  CHECK(run(IntegerModel::load(saved.path())) == run(model));
}

TEST_CASE("damaged constants are refused", "[integer][constants]") {
  // constants.0: 54 weights of 4 bits; .1: 3 biases; .2: 60 weights of 2 bits; .3: 30 of 8 bits;
  // .4: 3 biases.
  const SavedProgram program;
  const auto check = [&](const char* text, const std::function<void(Json&)>& change) {
    QUANTRAIN_CHECK_ERROR(program.load_edited(change), DataError, text);
  };
  const auto members = [](Json& json, ValueId output) -> Json& {
    return json["steps"][step_position(output)]["members"];
  };
  check("lacks \"bits\"", [](Json& json) { json["constants"][0].erase("bits"); });
  check("lacks \"count\"", [](Json& json) { json["constants"][0].erase("count"); });
  check("[constants.0] has an unknown member \"color\"",
        [](Json& json) { json["constants"][0]["color"] = 1; });
  check("\"bits\" is 33", [](Json& json) { json["constants"][0]["bits"] = 33; });
  check("\"bits\" is 0", [](Json& json) { json["constants"][0]["bits"] = 0; });
  check("\"count\" is 0", [](Json& json) { json["constants"][0]["count"] = 0; });
  check("\"count\" is 2199023255552",
        [](Json& json) { json["constants"][0]["count"] = int64_t{1} << 41; });
  check("[constants.2] 15 elements, expected 16 for 61 integers of 2 bits",
        [](Json& json) { json["constants"][2]["count"] = 61; });
  check("[constants.2] 15 elements, expected 23 for 60 integers of 3 bits",
        [](Json& json) { json["constants"][2]["bits"] = 3; });
  check("[constants.1] 3 elements, expected 4 for 4 integers of 32 bits",
        [](Json& json) { json["constants"][1]["count"] = 4; });
  check("\"constants.1\" is I32, expected U8",
        [](Json& json) { json["constants"][1]["bits"] = 8; });
  check("\"constants.3\" is U8, expected I32",
        [](Json& json) { json["constants"][3]["bits"] = 32; });
  check("[constants.4] no layer reads the constant",
        [&](Json& json) { members(json, kLogits).erase("bias"); });
  check("\"constants.5\"", [](Json& json) { json["constants"].push_back(json["constants"][0]); });
  check("constant 4 does not exist",
        [](Json& json) { json["constants"].erase(json["constants"].begin() + 4); });
  check("lacks \"weight\"", [&](Json& json) { members(json, kFc).erase("weight"); });
  check("constant 5 does not exist", [&](Json& json) { members(json, kFc)["weight"] = 5; });
  check("\"weight\" is -1", [&](Json& json) { members(json, kFc)["weight"] = -1; });
  check("constant 1 is not integers of 1 to 8 bits",
        [&](Json& json) { members(json, kFc)["weight"] = 1; });
  check("constant 0 is not integers of 32 bits",
        [&](Json& json) { members(json, kConv)["bias"] = 0; });
  check("has an unknown member \"weight\"", [&](Json& json) { members(json, kMax)["weight"] = 0; });
  // Both ways to give the weights of a step.
  check("has an unknown member \"weight_bits\"",
        [&](Json& json) { members(json, kFc)["weight_bits"] = 2; });
  QUANTRAIN_CHECK_ERROR(program.load_edited([](Json& json) { json["constants"][2]["bits"] = 9; }),
                        QuantError,
                        "[constants.2] weights have ");
  // 57 weights also take 15 bytes, but the extents require 60.
  QUANTRAIN_CHECK_ERROR(program.load_with("constants.2",
                                          [&](TensorFile& file) {
                                            Json json = Json::parse(file.metadata["network"]);
                                            json["constants"][2]["count"] = 57;
                                            file.metadata["network"] = json.dump();
                                            file.add<uint8_t>(
                                                "constants.2", {15}, std::vector<uint8_t>(15));
                                          }),
                        ShapeError,
                        "[fc] 57 weights for 5 outputs with 12 weights each");
  QUANTRAIN_CHECK_ERROR(
      program.load_edited([&](Json& json) { members(json, kFc)["weight"] = 0; }), DataError, "");
}

TEST_CASE("bits after the last integer of a constant are refused", "[integer][constants]") {
  Builder b;
  const int x = b.input({3}, kX);
  const RandomProduct p({.outputs = 1, .length = 3, .x = kX, .weight_bits = 3, .bias = false}, 1);
  b.program.outputs = {b.accumulators("fc", QuantizedLinear{1, 3, 1, p.product}, {x}, {1}, {0.5})};
  const SavedProgram program(b.program);
  const auto load = [&](std::vector<uint8_t> bytes) {
    return program.load_with("constants.0", [&](TensorFile& file) {
      file.add<uint8_t>("constants.0", {std::ssize(bytes)}, bytes);
    });
  };
  // 001, 111, 100, and bit 9.
  CHECK(product_at(load({0x39, 0x01}), 0).weight.values() == std::vector<int8_t>{1, -1, -4});
  QUANTRAIN_CHECK_ERROR(
      load({0x39, 0x03}), DataError, "[constants.0] the bits after the last integer are not 0");
  QUANTRAIN_CHECK_ERROR(load({0x39}), DataError, "1 elements, expected 2 for 3 integers of 3 bits");
}

TEST_CASE("overflow is found in every step that shares weights", "[integer][constants]") {
  // Steps that read one constant of `size` weights of 127.
  const auto shared = [](int64_t size, std::vector<int32_t> biases) {
    Builder b;
    const int x = b.input({size}, kX);
    QuantizedLinear op{1, size, 1, {}};
    op.product.zero_x = stored_zero_point(kX);
    op.product.weight = std::vector<int8_t>(static_cast<size_t>(size), 127);
    for (const int32_t bias : biases) {
      op.product.bias = std::vector<int32_t>{bias};
      b.program.outputs = {b.accumulators("fc", op, {x}, {1}, {0.5})};
    }
    return b.program;
  };
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t reach = 100 * 127 * (255 - stored_zero_point(kX));
  const auto last = static_cast<int32_t>(kMost - reach);
  CHECK_NOTHROW(validate(shared(100, {0, 7, last})));
  QUANTRAIN_CHECK_ERROR(
      validate(shared(100, {0, 7, last + 1})), QuantError, "accumulator of channel 0 could reach");
  // Near the limit the weights are read again, but not without end.
  const int64_t size = int64_t{1} << 14;
  const auto large = static_cast<int32_t>(kMost - size * 127 * 255);
  CHECK_NOTHROW(validate(shared(size, std::vector<int32_t>(9, large))));
  QUANTRAIN_CHECK_ERROR(validate(shared(size, std::vector<int32_t>((1 << 12) + 2, large))),
                        QuantError,
                        "it shares its weights");
}

TEST_CASE("shared weights are not read again for every number of outputs", "[integer][constants]") {
  QuantizedProduct p;
  p.weight = Constant(std::vector<int8_t>(size_t{1} << 22, 1));
  OverflowCheck check;
  // The first reading is free. Then 16 readings are 2^26 weights.
  for (int k = 0; k <= 16; ++k) {
    check(p, int64_t{1} << k, "fc");
    check(p, int64_t{1} << k, "fc");  // not read again
  }
  QUANTRAIN_CHECK_ERROR(
      check(p, int64_t{1} << 17, "fc"),
      QuantError,
      "[fc] it shares its weights, and the proof that sums fit would read more than 2^26 shared "
      "weights again, because numbers of outputs differ, or because sums or biases are near 2^31");
  OverflowCheck many;
  for (int k = 0; k < 1 << 14; ++k) many(p, 1, "fc");
  QUANTRAIN_CHECK_ERROR(many(p, 1, "fc"),
                        QuantError,
                        "[fc] the products up to this one have more than 2^36 weights, where "
                        "shared ones count for each product: take fewer of them");
}

TEST_CASE("early files, in which each step has its own weights, load", "[integer][constants]") {
  const SavedProgram early(every_operation(), true);
  CHECK(load_program(early.path()) == every_operation());
  CHECK(content_hash(load_program(early.path())) == content_hash(every_operation()));
  CHECK(early.load_network(early.network()) == every_operation());
  for (int bits = 2; bits <= 8; ++bits) {
    CAPTURE(bits);
    const Program program = unrolled(3, 5, bits);
    const SavedProgram saved(program, true);
    const Program loaded = load_program(saved.path());
    CHECK(loaded == program);
    CHECK(product_at(loaded, 2).weight.id() == product_at(loaded, 0).weight.id());
    CHECK(run(IntegerModel(loaded)) == run(IntegerModel(program)));
  }
}

TEST_CASE("damaged weights of early files are refused", "[integer][constants]") {
  const SavedProgram program(every_operation(), true);
  const auto members = [](Json& json) -> Json& {
    return json["steps"][step_position(kFc)]["members"];
  };
  const auto check = [&](auto* type, const char* text, const std::function<void(Json&)>& change) {
    using Type = std::decay_t<decltype(*type)>;
    QUANTRAIN_CHECK_ERROR(
        program.load_edited([&](Json& json) { change(members(json)); }), Type, text);
  };
  DataError* const data = nullptr;
  ShapeError* const shape = nullptr;
  check(data, "\"weights\" is -1, expected a whole number in ", [](Json& m) { m["weights"] = -1; });
  check(data, "15 bytes for 61 weights of 2 bits", [](Json& m) { m["weights"] = 61; });
  // 57 weights also take 15 bytes, but the extents require 60.
  check(shape, "57 weights for 5 outputs with 12 weights each", [](Json& m) { m["weights"] = 57; });
  check(data, "\"weight_bits\" is 9, expected a whole number in [2, 8]", [](Json& m) {
    m["weight_bits"] = 9;
  });
  check(data, "\"weight_bits\" is 1, expected a whole number in [2, 8]", [](Json& m) {
    m["weight_bits"] = 1;
  });
  check(data, "15 bytes for 60 weights of 4 bits", [](Json& m) { m["weight_bits"] = 4; });
  check(data, "lacks \"weight\"", [](Json& m) { m.erase("weights"); });
  check(data, "lacks \"weight_bits\"", [](Json& m) { m.erase("weight_bits"); });
  const auto nothing = [](TensorFile&) {};
  for (const char* const name : {"1.weight", "7.weight", "8.weight"})
    QUANTRAIN_CHECK_ERROR(program.load_with(name, nothing), DataError, name);
  // A product may lack its bias, but then the program is a different one.
  CHECK_FALSE(program.load_with("8.bias", nothing) == every_operation());
  const auto with_bytes = [&](size_t bytes) {
    return program.load_with("1.weight", [&](TensorFile& file) {
      file.add<uint8_t>("1.weight", {static_cast<int64_t>(bytes)}, std::vector<uint8_t>(bytes));
    });
  };
  QUANTRAIN_CHECK_ERROR(with_bytes(26), DataError, "[step 1] 26 bytes for 54 weights of 4 bits");
  QUANTRAIN_CHECK_ERROR(
      program.load_with(
          "8.bias",
          [](TensorFile& file) { file.add<int32_t>("8.bias", {2}, std::vector<int32_t>(2)); }),
      ShapeError,
      "[logits] 2 biases for 3 outputs");
}

TEST_CASE("weights of 3 bits in an early file that need 4 bits are refused",
          "[integer][constants]") {
  Builder b;
  const int x = b.input({3}, kX);
  const RandomProduct p({.outputs = 1, .length = 3, .x = kX, .weight_bits = 3}, 1);
  b.program.outputs = {b.accumulators("fc", QuantizedLinear{1, 3, 1, p.product}, {x}, {1}, {0.5})};
  const SavedProgram program(b.program, true);
  const auto load = [&](std::vector<uint8_t> bytes) {
    return program.load_with("0.weight",
                             [&](TensorFile& file) { file.add<uint8_t>("0.weight", {2}, bytes); });
  };
  QUANTRAIN_CHECK_ERROR(load({0x14, 0}), QuantError, "[fc] weight 4 does not fit in 3 bits");
  // Bits that are left over have no meaning in early files.
  CHECK(product_at(load({0xd1, 0x72}), 0).weight.values() == std::vector<int8_t>{1, -3, 2});
}

}  // namespace quantrain::integer
