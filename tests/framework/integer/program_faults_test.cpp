#include "framework/integer/program_file.hpp"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/io/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/programs.hpp"
#include "tests/framework/integer/saved_program.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::integer {
namespace {

using quantrain::test::read_bytes;
using quantrain::test::TemporaryFolder;
using quantrain::test::write_bytes;
using test::Builder;
using test::every_operation;
using test::Json;
using test::kX;
using test::RandomProduct;
using test::SavedProgram;
using namespace test::every;

}  // namespace

TEST_CASE("damaged features are refused", "[integer][program_file]") {
  const SavedProgram program;
  const auto extent = static_cast<size_t>(every_operation().value(0).shape.back());
  const std::vector<double> ones(extent, 1.0);
  const auto check = [&](auto* type, const char* text, const std::function<void(Json&)>& change) {
    using Type = std::decay_t<decltype(*type)>;
    QUANTRAIN_CHECK_ERROR(program.load_edited([&](Json& json) {
      json["values"][0]["features"] = {{"offset", ones}, {"scale", ones}};
      change(json["values"][0]["features"]);
    }),
                          Type,
                          text);
  };
  DataError* const data = nullptr;
  QuantError* const quant = nullptr;
  CHECK(program
            .load_edited([&](Json& json) {
              json["values"][0]["features"] = {{"offset", ones}, {"scale", ones}};
            })
            .value(0)
            .features.size() == static_cast<int64_t>(extent));
  check(data, "lacks \"offset\"", [](Json& f) { f.erase("offset"); });
  check(data, "lacks \"scale\"", [](Json& f) { f.erase("scale"); });
  check(data, "is 3, expected a JSON object", [](Json& f) { f = 3; });
  check(data, "has an unknown member \"mean\"", [](Json& f) { f["mean"] = 0; });
  check(data, "\"scale\" is 1.0, expected a list", [](Json& f) { f["scale"] = 1.0; });
  check(data, "\"scale\" is \"1\", expected a number", [](Json& f) { f["scale"][0] = "1"; });
  check(data, "\"offset\" is null, expected a number", [](Json& f) { f["offset"][0] = nullptr; });
  check(data, "\"offset\" is 1e+300, which is beyond the range of float32", [](Json& f) {
    f["offset"][0] = 1e300;
  });
  check(data, "\"features\" must not be empty", [](Json& f) {
    f["offset"] = f["scale"] = Json::array();
  });
  check(quant, "expected one for each", [](Json& f) { f["offset"].push_back(1.0); });
  check(quant, "expected one for each", [](Json& f) {
    f["offset"].push_back(1.0);
    f["scale"].push_back(1.0);
  });
  check(quant, "and scale 0", [](Json& f) { f["scale"][0] = 0.0; });
  check(quant, "and scale 0", [](Json& f) { f["scale"][0] = 1e-60; });
  check(quant, "and scale -2", [](Json& f) { f["scale"][0] = -2; });
  QUANTRAIN_CHECK_ERROR(program.load_edited([&](Json& json) {
    json["values"][2]["features"] = {{"offset", ones}, {"scale", ones}};
  }),
                        GraphError,
                        "[sum] has features, but is not an input");
}

TEST_CASE("a file that was tampered with is refused", "[integer][program_file]") {
  const SavedProgram program;
  CHECK_NOTHROW(load_program(program.path()));

  SECTION("truncated") {
    const std::vector<uint8_t> bytes = read_bytes(program.path());
    const TemporaryFolder folder;
    for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, bytes.size() - 1}) {
      const std::vector<uint8_t> part(bytes.begin(),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(size));
      write_bytes(folder / "part", part);
      CHECK_THROWS_AS(load_program(folder / "part"), DataError);
      CHECK_THROWS_AS(parse_program(part, "part"), DataError);
    }
  }
  SECTION("another format, version or layout") {
    for (const char* key : {"format", "version", "layout"}) {
      CHECK_THROWS_AS(program.load_changed([&](TensorFile& file) {
        REQUIRE(file.metadata.count(key) == 1);
        file.metadata[key] = "other";
      }),
                      DataError);
      CHECK_THROWS_AS(program.load_changed([&](TensorFile& file) { file.metadata.erase(key); }),
                      DataError);
    }
  }
  SECTION("a network that is no JSON, or lacks members") {
    CHECK_THROWS_AS(program.load_changed([](TensorFile& file) { file.metadata["network"] = "{"; }),
                    DataError);
    CHECK_THROWS_AS(program.load_changed([](TensorFile& file) { file.metadata["network"] = "{}"; }),
                    DataError);
    CHECK_THROWS_AS(program.load_changed([](TensorFile& file) { file.metadata["network"] = "[]"; }),
                    DataError);
    CHECK_THROWS_AS(program.load_changed([](TensorFile& file) { file.metadata.erase("network"); }),
                    DataError);
  }
  SECTION("unknown layers, impossible numbers") {
    const auto check = [&](auto* type, const char* text, const std::function<void(Json&)>& change) {
      using Type = std::decay_t<decltype(*type)>;
      QUANTRAIN_CHECK_ERROR(program.load_edited(change), Type, text);
    };
    DataError* const data = nullptr;
    GraphError* const graph = nullptr;
    ShapeError* const shape = nullptr;
    QuantError* const quant = nullptr;
    const auto members = [](Json& json, ValueId output) -> Json& {
      return json["steps"][step_position(output)]["members"];
    };
    check(data, "[step 1] unknown type of layer \"quantized_magic\"", [](Json& json) {
      json["steps"][step_position(kConv)]["type"] = "quantized_magic";
    });
    check(graph, "[max] value 50 does not exist", [](Json& json) {
      json["steps"][step_position(kMax)]["inputs"] = {50};
    });
    check(graph, "[max] reads value 4, which no layer wrote", [](Json& json) {
      json["steps"][step_position(kMax)]["inputs"] = {4};
    });
    check(graph, "[input0] value 0 is written twice", [](Json& json) { json["inputs"] = {0, 0}; });
    check(graph, "does not exist", [](Json& json) { json["outputs"] = {99}; });
    check(
        graph, "[program] there is no output", [](Json& json) { json["outputs"] = Json::array(); });
    check(shape, "extent 0", [&](Json& json) { members(json, kConv)["stride_h"] = 0; });
    check(graph, "has shape", [&](Json& json) { members(json, kConv)["h"] = 5; });
    check(shape, "has more than 1073741824 elements", [&](Json& json) {
      members(json, kConv)["pad_h"] = members(json, kConv)["pad_w"] = 1048576;
    });
    check(data, "\"bits\" is 17, expected a whole number in [1, 8]", [](Json& json) {
      json["values"][2]["codes"]["bits"] = 17;
    });
    check(data, "\"zero_point\" is 300, expected a whole number in [-128, 255]", [](Json& json) {
      json["values"][2]["codes"]["zero_point"] = 300;
    });
    check(quant, "[sum] ", [](Json& json) { json["values"][2]["codes"]["zero_point"] = 200; });
    check(data, "\"signed\" is 1, expected true or false", [](Json& json) {
      json["values"][2]["codes"]["signed"] = 1;
    });
    check(quant, "[sum] ", [](Json& json) { json["values"][2]["codes"]["scale"] = 0; });
    check(data, "[sum] \"scale\" is 1e+300, which is beyond the range of float32", [](Json& json) {
      json["values"][2]["codes"]["scale"] = 1e300;
    });
    check(graph, "gives codes, but its value is declared as accumulators", [](Json& json) {
      json["values"][9].erase("codes");
      json["values"][9]["scale"] = {1.0};
    });
    check(graph, "gives accumulators, but its value is declared as codes", [](Json& json) {
      json["values"][10]["codes"] = json["values"][9]["codes"];
      json["values"][10].erase("scale");
    });
    check(data, "has an unknown member \"scale\"", [](Json& json) {
      json["values"][9]["scale"] = {1.0};
    });
    check(data, "has an unknown member \"color\"", [](Json& json) { json["color"] = "red"; });
    check(data, "lacks \"lo\"", [&](Json& json) { members(json, kFc)["output"]["y"].erase("lo"); });
    // With more classes, the step would read beyond the end of the last row.
    check(graph, "[softmax] input 0 has shape [2, 5], expected 12 elements", [&](Json& json) {
      members(json, kSoftmax)["classes"] = 6;
    });
    check(graph, "[softmax] input 0 has shape [2, 5], expected 15 elements", [&](Json& json) {
      members(json, kSoftmax)["rows"] = 3;
    });
    check(shape, "[softmax] extent 0 is not positive", [&](Json& json) {
      members(json, kSoftmax)["classes"] = 0;
    });
    check(shape, "[softmax] a value has more than 1073741824 elements", [&](Json& json) {
      members(json, kSoftmax)["rows"] = members(json, kSoftmax)["classes"] = 1 << 30;
    });
    check(quant,
          "[softmax] docs/quantization.md (8) does not allow multiplier 7 with shift ",
          [&](Json& json) { members(json, kSoftmax)["m0"] = 7; });
    check(quant, "[softmax] docs/quantization.md (8) does not allow multiplier ", [&](Json& json) {
      members(json, kSoftmax)["shift"] = 63;
    });
    check(data, "lacks \"classes\"", [&](Json& json) { members(json, kSoftmax).erase("classes"); });
    // With more channels, the step would read beyond the end of the factors.
    check(graph, "[scaled] input 0 has shape [4, 4, 3], expected 52 elements", [&](Json& json) {
      members(json, kScaled)["channels"] = 13;
    });
    check(graph, "[scaled] input 1 has shape [2, 2, 3], expected 6 elements", [&](Json& json) {
      members(json, kScaled)["rows"] = 8;
      members(json, kScaled)["channels"] = 6;
    });
    check(shape, "[scaled] extent 0 is not positive", [&](Json& json) {
      members(json, kScaled)["rows"] = 0;
    });
    check(shape, "[scaled] a value has more than 1073741824 elements", [&](Json& json) {
      members(json, kScaled)["rows"] = members(json, kScaled)["channels"] = 1 << 30;
    });
    check(quant, "[scaled] zero point 256 is not in [0, 255]", [&](Json& json) {
      members(json, kScaled)["zero_b"] = 256;
    });
    check(quant, "[scaled] docs/quantization.md (8) does not allow multiplier ", [&](Json& json) {
      members(json, kScaled)["shift"] = 63;
    });
    check(quant,
          "[scaled] docs/quantization.md (8) does not allow multiplier 7 with shift ",
          [&](Json& json) { members(json, kScaled)["m0"] = 7; });
    check(data, "lacks \"zero_a\"", [&](Json& json) { members(json, kScaled).erase("zero_a"); });
    check(data, "\"inputs\" is 1.5, expected a whole number", [](Json& json) {
      json["inputs"] = {0, 1.5};
    });
    check(data, "\"inputs\" is true, expected a whole number", [](Json& json) {
      json["inputs"] = {0, true};
    });
    check(data, "\"output\" is 4294967298, expected a whole number", [](Json& json) {
      json["steps"][step_position(kSum)]["output"] = int64_t{4294967298};
    });
    check(data, "\"shape\" is 0, expected a whole number in [1, ", [](Json& json) {
      json["values"][10]["shape"] = {0};
    });
    // Later layers rely on the codes that a value declares, so the step that writes the value must
    // give no other codes.
    check(graph,
          "[sum] gives stored codes in [5, 15], but its value is u3 with stored codes in [0, 7]",
          [](Json& json) { json["values"][2]["codes"]["bits"] = 3; });
    check(graph, "[squashed] gives stored codes in [", [](Json& json) {
      json["values"][7]["codes"]["bits"] = 4;
    });
  }
  SECTION("a list that is too long") {
    QUANTRAIN_CHECK_ERROR(program.load_edited([](Json& json) {
      json["values"][0]["shape"] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    }),
                          DataError,
                          "\"shape\" has 9 entries, expected at most 8");
  }
  SECTION("missing tensors, extra tensors and tensors of another type") {
    const auto nothing = [](TensorFile&) {};
    for (const char* name : {"constants.0",
                             "1.output.m0",
                             "1.output.shift",
                             "5.table",
                             "constants.3",
                             "constants.4",
                             "10.powers"}) {
      QUANTRAIN_CHECK_ERROR(program.load_with(name, nothing), DataError, name);
    }
    QUANTRAIN_CHECK_ERROR(program.load_with("constants.0",
                                            [](TensorFile& file) {
                                              file.add<int32_t>(
                                                  "constants.0", {27}, std::vector<int32_t>(27));
                                            }),
                          DataError,
                          "\"constants.0\" is I32, expected U8");
    QUANTRAIN_CHECK_ERROR(program.load_with("5.table",
                                            [](TensorFile& file) {
                                              file.add<uint8_t>(
                                                  "5.table", {255}, std::vector<uint8_t>(255));
                                            }),
                          ShapeError,
                          "[squashed] a table of 255 codes, expected 256 for each channel");
    QUANTRAIN_CHECK_ERROR(
        program.load_with("5.table",
                          [](TensorFile& file) {
                            file.add<uint8_t>("5.table", {256 * 5}, std::vector<uint8_t>(256 * 5));
                          }),
        ShapeError,
        "[squashed] tables of 5 channels do not fit samples of 24 codes");
    // A difference of two codes is an index into the table, so a shorter table would be read beyond
    // its end.
    constexpr int32_t kOne = QuantizedSoftmax::kOne;
    const auto load_powers = [&](std::vector<int32_t> powers) {
      return program.load_with("10.powers", [&](TensorFile& file) {
        file.add<int32_t>("10.powers", {static_cast<int64_t>(powers.size())}, powers);
      });
    };
    std::vector<int32_t> powers(256, kOne / 2);
    powers[0] = kOne;
    CHECK_NOTHROW(load_powers(powers));
    QUANTRAIN_CHECK_ERROR(load_powers(std::vector<int32_t>(255, kOne)),
                          ShapeError,
                          "[softmax] a table of 255 powers, expected 256");
    QUANTRAIN_CHECK_ERROR(load_powers(std::vector<int32_t>(256, kOne - 1)),
                          QuantError,
                          "[softmax] powers[0] is 1073741823, expected ");
    powers[200] = -1;
    QUANTRAIN_CHECK_ERROR(load_powers(powers), QuantError, "[softmax] a power of -1, expected 0");
    powers[200] = kOne + 1;
    QUANTRAIN_CHECK_ERROR(load_powers(powers), QuantError, "[softmax] a power of 1073741825");
    QUANTRAIN_CHECK_ERROR(program.load_with("10.powers",
                                            [](TensorFile& file) {
                                              file.add<uint8_t>(
                                                  "10.powers", {256}, std::vector<uint8_t>(256));
                                            }),
                          DataError,
                          "\"10.powers\" is U8, expected I32");
    QUANTRAIN_CHECK_ERROR(
        program.load_with(
            "constants.4",
            [](TensorFile& file) {
              file.add<int32_t>(
                  "constants.4", {3}, std::vector<int32_t>(3, std::numeric_limits<int32_t>::min()));
            }),
        QuantError,
        "[logits] accumulator of channel 0 could reach");
    QUANTRAIN_CHECK_ERROR(
        program.load_with("1.output.shift",
                          [](TensorFile& file) {
                            file.add<int8_t>("1.output.shift", {3}, std::vector<int8_t>(3, -1));
                          }),
        QuantError,
        "with shift -1");
    QUANTRAIN_CHECK_ERROR(
        program.load_with(
            "none",
            [](TensorFile& file) { file.add<int8_t>("stray", {1}, std::vector<int8_t>(1)); }),
        DataError,
        "[stray] the tensor does not belong to any layer");
    QUANTRAIN_CHECK_ERROR(
        program.load_with(
            "none",
            [](TensorFile& file) { file.add<int8_t>("99.weight", {1}, std::vector<int8_t>(1)); }),
        DataError,
        "[99.weight] the tensor does not belong to any layer");
  }
}

TEST_CASE("duplicate keys and empty tensors in a file are refused", "[integer][program_file]") {
  const SavedProgram program;
  QUANTRAIN_CHECK_ERROR(program.load_changed([](TensorFile& file) {
    std::string& network = file.metadata["network"];
    const std::string last = "\"steps\":";
    network.insert(network.find(last), "\"outputs\":[0],");
  }),
                        DataError,
                        "the network has the key \"outputs\" twice");
  // A missing bias means 0. An empty tensor would be a second way to write that.
  QUANTRAIN_CHECK_ERROR(
      program.load_with("constants.4",
                        [](TensorFile& file) { file.add<int32_t>("constants.4", {0}, {}); }),
      DataError,
      "[constants.4] has shape [0], expected [n] with n at least 1");
  QUANTRAIN_CHECK_ERROR(
      program.load_with("constants.4",
                        [](TensorFile& file) {
                          file.add<int32_t>("constants.4", {3, 1}, std::vector<int32_t>(3));
                        }),
      DataError,
      "[constants.4] has shape [3, 1], expected [n]");
}

TEST_CASE("writing the same network back does not change the program", "[integer][program_file]") {
  const SavedProgram program;
  CHECK(program.load_network(program.network()) == every_operation());
}

TEST_CASE("a network with any one entry replaced is loaded or refused",
          "[integer][program_file][serial]") {
  const SavedProgram program;
  const Json original = program.network();
  const std::vector<Json> others = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    3,
                                    255,
                                    int64_t{1} << 31,
                                    int64_t{1} << 62,
                                    ~uint64_t{0},
                                    1e300,
                                    -0.5,
                                    "text",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({0, 0})};
  std::vector<std::string> leaves;
  const Json flat = original.flatten();
  for (const auto& [path, value] : flat.items()) leaves.push_back(path);
  REQUIRE(leaves.size() > 200);
  int64_t refused = 0;
  int64_t loaded = 0;
  size_t count = 0;
  for (const std::string& leaf : leaves) {
    for (const Json& other : others) {
      if (count++ % (quantrain::test::kSanitized ? 11 : 1) != 0) continue;
      Json changed = original;
      changed[Json::json_pointer(leaf)] = other;
      INFO(leaf << " = " << other);
      try {
        const Program result = program.load_network(changed);
        validate(result);
        ++loaded;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 10 * loaded);
}

TEST_CASE("a network that lacks any one member is refused", "[integer][program_file][serial]") {
  const SavedProgram program;
  const Json original = program.network();
  const std::function<void(const Json&, const std::string&)> visit = [&](const Json& json,
                                                                         const std::string& path) {
    if (!json.is_structured()) return;
    for (const auto& [key, value] : json.items()) {
      const std::string at = path + "/" + key;
      Json changed = original;
      Json& parent = changed[Json::json_pointer(path)];
      if (parent.is_array()) {
        parent.erase(static_cast<size_t>(std::stoul(key)));
      } else {
        parent.erase(key);
      }
      INFO(at);
      // Without one of its outputs, the program is still valid.
      const bool may_be_valid = at.rfind("/outputs/", 0) == 0;
      if (!may_be_valid) CHECK_THROWS_AS(program.load_network(changed), Error);
      visit(value, at);
    }
  };
  visit(original, "");
}

TEST_CASE("a file with any one byte changed is loaded or refused",
          "[integer][program_file][serial]") {
  const SavedProgram program;
  const std::vector<uint8_t> original = read_bytes(program.path());
  Random random(3);
  int64_t refused = 0;
  const int files = quantrain::test::kSanitized ? 1000 : 3000;
  for (int i = 0; i < files; ++i) {
    std::vector<uint8_t> bytes = original;
    const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())));
    bytes[at] = static_cast<uint8_t>(bytes[at] + 1 + random.below(255));
    try {
      validate(parse_program(bytes, "changed"));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > files / 3);
}

}  // namespace quantrain::integer
