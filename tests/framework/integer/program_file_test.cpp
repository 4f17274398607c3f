#include "framework/integer/program_file.hpp"

#include <string>
#include <variant>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/integer/saved_program.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::integer {
namespace {

using quantrain::test::read_bytes;
using quantrain::test::TemporaryFolder;
using test::Builder;
using test::every_operation;
using test::Json;
using test::kX;
using test::random_program;
using test::RandomProduct;
using test::SavedProgram;
using namespace test::every;

Program saved_and_loaded(const Program& program) {
  const TemporaryFolder folder;
  save_program(folder / "program", program);
  return load_program(folder / "program");
}

}  // namespace

TEST_CASE("a program does not change when it is saved and loaded", "[integer][program_file]") {
  std::vector<Program> programs{every_operation(), test::mlp(), test::wide_concat(65)};
  for (uint64_t seed = 0; seed < 40; ++seed) programs.push_back(random_program(seed));
  for (const Program& program : programs) {
    const TemporaryFolder folder;
    save_program(folder / "program", program);
    const Program loaded = load_program(folder / "program");
    CHECK(loaded == program);
    CHECK(content_hash(loaded) == content_hash(program));
    CHECK(size_bytes(loaded) == size_bytes(program));
    const std::vector<uint8_t> bytes = read_bytes(folder / "program");
    CHECK(parse_program(bytes, "flash") == program);
    // The same program gives the same bytes.
    save_program(folder / "again", loaded);
    CHECK(read_bytes(folder / "again") == bytes);
  }
}

TEST_CASE("a file contains a dilation only if it is not 1", "[integer][program_file]") {
  Program program = every_operation();
  const uint64_t undilated = content_hash(program);
  const auto members = [](const Program& p) {
    const TemporaryFolder folder;
    save_program(folder / "program", p);
    const TensorFile file = load_safetensors(folder / "program");
    return Json::parse(file.metadata.at("network"))["steps"][step_position(kConv)]["members"];
  };
  CHECK_FALSE(members(program).contains("dilation_h"));
  CHECK_FALSE(members(program).contains("dilation_w"));
  kernels::Conv2dShape& shape =
      std::get<QuantizedConv2d>(program.steps[step_position(kConv)].operation).shape;
  // More padding makes up for the dilation, so that the output is still [4, 4].
  shape.dilation_w = shape.pad_w = 2;
  const Program loaded = saved_and_loaded(program);
  CHECK(loaded == program);
  CHECK(content_hash(loaded) == content_hash(program));
  CHECK(content_hash(program) != undilated);
  CHECK_FALSE(members(program).contains("dilation_h"));
  CHECK(members(program)["dilation_w"] == 2);
  const SavedProgram saved;
  const auto with = [&](const Json& value) {
    return saved.load_edited(
        [&](Json& json) { json["steps"][step_position(kConv)]["members"]["dilation_h"] = value; });
  };
  CHECK(with(1) == every_operation());
  QUANTRAIN_CHECK_ERROR(with(0), ShapeError, "extent 0 is not in [1, 1048576]");
  QUANTRAIN_CHECK_ERROR(with(3), ShapeError, "a dilated kernel of [7, 3] exceeds the padded image");
  QUANTRAIN_CHECK_ERROR(with(-1), DataError, "\"dilation_h\" is -1");
  QUANTRAIN_CHECK_ERROR(with("2"), DataError, "\"dilation_h\" is \"2\"");
  QUANTRAIN_CHECK_ERROR(saved.load_edited([](Json& json) {
    json["steps"][step_position(kMax)]["members"]["dilation_h"] = 1;
  }),
                        DataError,
                        "unknown member \"dilation_h\"");
}

TEST_CASE("a file contains a padding of its own for the end only if it differs",
          "[integer][program_file]") {
  Program program = every_operation();
  kernels::Conv2dShape& shape =
      std::get<QuantizedConv2d>(program.steps[step_position(kConv)].operation).shape;
  const uint64_t even = content_hash(program);
  // The same number of elements, of which more lie after the image or before it.
  shape.pad_h = 0;
  shape.end_h = 2;
  shape.pad_w = 2;
  shape.end_w = -2;
  const TemporaryFolder folder;
  save_program(folder / "program", program);
  const Program loaded = load_program(folder / "program");
  CHECK(loaded == program);
  CHECK(content_hash(loaded) == content_hash(program));
  CHECK(content_hash(program) != even);
  const TensorFile file = load_safetensors(folder / "program");
  const Json steps = Json::parse(file.metadata.at("network"))["steps"];
  CHECK(steps[step_position(kConv)]["members"]["end_h"] == 2);
  CHECK(steps[step_position(kConv)]["members"]["end_w"] == -2);
  const SavedProgram saved;
  const auto with = [&](const Json& value) {
    return saved.load_edited(
        [&](Json& json) { json["steps"][step_position(kConv)]["members"]["end_h"] = value; });
  };
  CHECK(with(0) == every_operation());
  QUANTRAIN_CHECK_ERROR(with(-2), ShapeError, "padding [-1, 1] is not in [0, 1048576]");
  QUANTRAIN_CHECK_ERROR(with(1 << 20), ShapeError, "padding [1048577, 1] is not in");
  QUANTRAIN_CHECK_ERROR(with(-(1 << 20) - 1), DataError, "\"end_h\" is -1048577");
}

TEST_CASE("a file stores the operands of an addition by name if there are two, else as a list",
          "[integer][program_file]") {
  const SavedProgram saved;
  const auto members = [](Json& json, ValueId id) -> Json& {
    return json["steps"][step_position(id)]["members"];
  };
  Json network = saved.network();
  // Older files, from when additions had only two operands, have this form.
  CHECK(members(network, kSum).dump() ==
        R"({"size":32,"zero_a":7,"zero_b":125,"m_a":572662271,"m_b":1431655730,"shift":33,)"
        R"("y":{"zero_point":5,"lo":5,"hi":15}})");
  CHECK(members(network, kTotal)["operands"].size() == 3);
  CHECK_FALSE(members(network, kTotal).contains("zero_a"));
  // A list of two operands gives the same operation.
  const Json list = {{{"zero_x", 7}, {"m", 572662271}}, {{"zero_x", 125}, {"m", 1431655730}}};
  const auto as_list = [&](Json& json) {
    for (const char* name : {"zero_a", "zero_b", "m_a", "m_b"}) members(json, kSum).erase(name);
    members(json, kSum)["operands"] = list;
  };
  CHECK(saved.load_edited(as_list) == every_operation());
  QUANTRAIN_CHECK_ERROR(
      saved.load_edited([&](Json& json) { members(json, kSum)["operands"] = list; }),
      DataError,
      "unknown member \"zero_a\"");
  QUANTRAIN_CHECK_ERROR(
      saved.load_edited([&](Json& json) { members(json, kTotal)["operands"] = Json::array(); }),
      ShapeError,
      "[total] an addition has 1 to 16384 operands, got 0");
  QUANTRAIN_CHECK_ERROR(
      saved.load_edited([&](Json& json) { members(json, kTotal)["operands"].erase(2); }),
      GraphError,
      "[total] has 3 inputs, but its operation takes 2");
  QUANTRAIN_CHECK_ERROR(
      saved.load_edited([&](Json& json) { members(json, kTotal).erase("operands"); }),
      DataError,
      "lacks \"zero_a\"");
  QUANTRAIN_CHECK_ERROR(
      saved.load_edited([&](Json& json) { members(json, kTotal)["operands"][2]["m"] = -1; }),
      DataError,
      "\"m\" is -1");
  QUANTRAIN_CHECK_ERROR(
      saved.load_edited([&](Json& json) { members(json, kTotal)["operands"][2]["zero_x"] = 9; }),
      GraphError,
      "[total] expects zero point 9, but the value has 108");
}

TEST_CASE("the node of a value in an early file is ignored", "[integer][program_file]") {
  const SavedProgram saved;
  CHECK_FALSE(saved.network()["values"][0].contains("node"));
  for (const int node : {-1, 7}) {
    CHECK(saved.load_edited([&](Json& json) { json["values"][0]["node"] = node; }) ==
          every_operation());
  }
  QUANTRAIN_CHECK_ERROR(saved.load_edited([](Json& json) { json["values"][0]["node"] = -2; }),
                        DataError,
                        "\"node\" is -2");
}

TEST_CASE("features of inputs are saved and loaded bit for bit", "[integer][program_file]") {
  Program program = every_operation();
  const auto random = [](int64_t n, uint64_t seed) {
    Random numbers(seed);
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(numbers.uniform(0.1f, 1.0f) *
                       std::ldexp(1.0f, static_cast<int>(20 * (i % 9) - 80)));
    return values;
  };
  for (const int id : program.inputs) {
    Value& value = program.values[static_cast<size_t>(id)];
    value.features = {random(value.shape.back(), 1), random(value.shape.back(), 2)};
  }
  CHECK(saved_and_loaded(program) == program);
  CHECK(content_hash(saved_and_loaded(program)) == content_hash(program));
}

TEST_CASE("weights of 1 to 8 bits are packed in the file and loaded unchanged",
          "[integer][program_file]") {
  for (int bits = 1; bits <= 8; ++bits) {
    const int8_t least = static_cast<int8_t>(-(1 << (bits - 1)));
    const int8_t most = static_cast<int8_t>(bits == 1 ? 1 : (1 << (bits - 1)) - 1);
    for (const int64_t length : {1, 2, 3, 4, 5, 7, 9, 255, 257}) {
      Builder b;
      const int x = b.input({length}, kX);
      RandomProduct p({.outputs = 1, .length = length, .x = kX, .weight_bits = bits, .bias = false},
                      static_cast<uint64_t>(bits));
      std::vector<int8_t> weight = p.product.weight.values();
      weight[0] = least;
      weight[static_cast<size_t>(length - 1)] = most;
      p.product.weight = {weight, bits};
      b.program.outputs = {
          b.accumulators("fc", QuantizedLinear{1, length, 1, p.product}, {x}, {1}, {0.5})};
      const TemporaryFolder folder;
      save_program(folder / "program", b.program);
      CAPTURE(bits, length);
      CHECK(load_program(folder / "program") == b.program);
      const TensorFile file = load_safetensors(folder / "program");
      const std::vector<uint8_t> packed = file.values<uint8_t>("constants.0");
      CHECK(static_cast<int64_t>(packed.size()) == (length * bits + 7) / 8);
      for (int64_t i = 0; i < length * bits; ++i) {  // bit by bit, from the lowest bit on
        const int bit = packed[static_cast<size_t>(i / 8)] >> (i % 8) & 1;
        const int code = weight[static_cast<size_t>(i / bits)];
        const int expected = bits == 1 ? code == 1 : code >> (i % bits) & 1;
        REQUIRE(bit == expected);
      }
    }
  }
}

TEST_CASE("a model loaded from a path or from memory gives the same results",
          "[integer][program_file]") {
  const TemporaryFolder folder;
  const IntegerModel model(test::mlp());
  model.save(folder / "model");
  const std::vector<uint8_t> file = read_bytes(folder / "model");
  const IntegerModel from_path = IntegerModel::load(folder / "model");
  const IntegerModel from_memory = IntegerModel::load(file);
  const std::vector<uint8_t> x = test::random_bytes(9 * 12, 1);
  std::vector<int32_t> expected(9 * 4);
  model.run_codes(x, expected);
  for (const IntegerModel& loaded : {from_path, from_memory}) {
    std::vector<int32_t> y(expected.size());
    loaded.run_codes(x, y);
    CHECK(y == expected);
    CHECK(loaded.hash() == model.hash());
    CHECK(loaded.size_bytes() == model.size_bytes());
    CHECK(loaded.logit_scale() == model.logit_scale());
    CHECK(loaded.memory(9) == model.memory(9));
  }
  QUANTRAIN_CHECK_ERROR(model.save(folder / "no/such/folder"), DataError, "");
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(folder / "none"), DataError, "");
  QUANTRAIN_CHECK_ERROR(IntegerModel::load(std::span<const uint8_t>()), DataError, "model");
}

TEST_CASE("the error about a file of an older version says what to do", "[integer][program_file]") {
  const SavedProgram program;
  QUANTRAIN_CHECK_ERROR(
      program.load_changed([](TensorFile& file) { file.metadata["version"] = "1"; }),
      DataError,
      "changed.safetensors: the file is of an older version, \"1\": convert the trained network "
      "again and save it");
  QUANTRAIN_CHECK_ERROR(
      program.load_changed([](TensorFile& file) { file.metadata["version"] = "3"; }),
      DataError,
      "version is \"3\", expected \"2\"");
  // The format is checked before the version.
  QUANTRAIN_CHECK_ERROR(program.load_changed([](TensorFile& file) {
    file.metadata["format"] = "quantrain";
    file.metadata["version"] = "1";
  }),
                        DataError,
                        "format is \"quantrain\", expected \"quantrain-integer\"");
}

TEST_CASE("a program whose names are not UTF-8 is not saved", "[integer][program_file]") {
  const TemporaryFolder folder;
  Builder b;
  const int x = b.input({2}, kX);
  b.program.outputs = {b.codes("caf\xe9", View{2}, {x}, {2}, kX)};
  const IntegerModel model(b.program);
  QUANTRAIN_CHECK_ERROR(
      model.save(folder / "model"), DataError, "a layer's name cannot be written as JSON");
  CHECK(folder.files() == 0);
}

TEST_CASE("a program that could not be loaded is not saved", "[integer][program_file]") {
  const TemporaryFolder folder;
  Builder b;
  int last = b.input({2}, kX);
  for (int i = 0; i < 1 << 14; ++i) last = b.codes("view", View{2}, {last}, {2}, kX);
  b.program.outputs = {last};
  QUANTRAIN_CHECK_ERROR(IntegerModel(b.program).save(folder / "model"),
                        DataError,
                        "\"values\" has 16385 entries, expected at most 16384");
  CHECK(folder.files() == 0);
}

TEST_CASE("a program without steps is saved and loaded", "[integer][program_file]") {
  Builder b;
  b.program.outputs = {b.input({2, 3}, kX)};
  CHECK(saved_and_loaded(b.program) == b.program);
}

TEST_CASE("metadata that the caller adds are saved and loaded", "[integer][program_file]") {
  const TemporaryFolder folder;
  const IntegerModel model(test::mlp());
  CHECK(model.metadata().empty());
  model.save(folder / "model", {{"classes", "cat, dog"}, {"data", "pets"}});
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  CHECK(loaded.metadata() ==
        std::map<std::string, std::string>{{"classes", "cat, dog"}, {"data", "pets"}});
  CHECK(loaded.hash() == model.hash());
  loaded.save(folder / "again", {{"data", "more pets"}});
  CHECK(IntegerModel::load(folder / "again").metadata() ==
        std::map<std::string, std::string>{{"classes", "cat, dog"}, {"data", "more pets"}});
  for (const char* key : {"format", "version", "layout", "network"}) {
    QUANTRAIN_CHECK_ERROR(model.save(folder / "refused", {{key, "x"}}),
                          DataError,
                          '"' + std::string(key) + "\" is reserved for the file");
  }
}

}  // namespace quantrain::integer
