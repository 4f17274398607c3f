#include "layers/onnx/reader.hpp"

#include <cmath>
#include <filesystem>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "layers/onnx/check_model.hpp"
#include "layers/onnx/elements.hpp"
#include "layers/onnx/message.hpp"
#include "tests/catch.hpp"
#include "tests/layers/onnx/onnx_files.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using namespace test;

onnx::Model parsed(const OnnxParts& parts) {
  return onnx::parse_model(onnx_model(parts), "m.onnx");
}

/// A model whose only initializer is this tensor.
onnx::StoredTensor read_tensor(const Proto& tensor) {
  OnnxParts parts = onnx_gemm();
  parts.initializers.push_back(tensor);
  return parsed(parts).graph.initializers.back();
}

void write_test_file(const std::string& path, std::string_view bytes) { write_file(path, bytes); }

TEST_CASE("an ONNX file becomes plain data", "[layers][onnx]") {
  const onnx::Model model = parsed(onnx_gemm());
  CHECK(model.ir_version == 8);
  CHECK(model.opset() == 17);
  CHECK(model.producer == "test");
  const onnx::Graph& graph = model.graph;
  CHECK(graph.name == "graph");
  REQUIRE(graph.nodes.size() == 2);
  const onnx::Node& gemm = graph.nodes[0];
  CHECK(gemm.op_type == "Gemm");
  CHECK(gemm.label() == "Gemm fc");
  CHECK(graph.nodes[1].label() == "Relu at y");
  CHECK(gemm.inputs == std::vector<std::string>{"x", "w", "b"});
  CHECK(gemm.outputs == std::vector<std::string>{"h"});
  CHECK(gemm.get("transB", int64_t{0}) == 1);
  CHECK(gemm.get("transA", int64_t{7}) == 7);
  CHECK(gemm.get("alpha", 0.0f) == 1.0f);
  QUANTRAIN_CHECK_ERROR(gemm.get("alpha", int64_t{0}), DataError, "\"alpha\" is not an integer");
  REQUIRE(graph.initializers.size() == 2);
  CHECK(graph.initializers[0].dims == std::vector<int64_t>{2, 3});
  CHECK(onnx::floats_of(graph.initializers[0]) == std::vector<float>{1, 2, 3, -4, 5, -6});
  REQUIRE(graph.inputs.size() == 1);
  CHECK(graph.inputs[0].name == "x");
  CHECK(graph.inputs[0].type == onnx::ElementType::kFloat);
  REQUIRE(graph.inputs[0].dims.size() == 2);
  CHECK(graph.inputs[0].dims[0].value == -1);
  CHECK(graph.inputs[0].dims[0].name == "N");
  CHECK(graph.inputs[0].dims[1].value == 3);
  onnx::check_model(model);
}

TEST_CASE("elements of every type are read from raw bytes and from typed fields",
          "[layers][onnx]") {
  using onnx::floats_of;
  using onnx::integers_of;
  const auto typed = [](int type,
                        const std::vector<int64_t>& dims,
                        int field,
                        bool packed,
                        const std::vector<int64_t>& values) {
    Proto tensor = onnx_tensor("t", type, dims);
    if (!packed) {
      for (const int64_t value : values) tensor.integer(static_cast<uint32_t>(field), value);
      return read_tensor(tensor);
    }
    Proto list;
    for (const int64_t value : values) list.varint(static_cast<uint64_t>(value));
    return read_tensor(tensor.message(static_cast<uint32_t>(field), list));
  };
  // float, as floats one by one and packed
  CHECK(floats_of(read_tensor(onnx_tensor("t", 1, {2}).number(4, 1.5f).number(4, -2.0f))) ==
        std::vector<float>{1.5f, -2.0f});
  CHECK(floats_of(read_tensor(onnx_tensor("t", 1, {2}).text(4, raw_bytes<float>({1.5f, -2.0f})))) ==
        std::vector<float>{1.5f, -2.0f});
  CHECK(floats_of(read_tensor(onnx_tensor("t", 11, {1}).text(10, raw_bytes<double>({0.1})))) ==
        std::vector<float>{0.1f});
  for (const bool packed : {false, true}) {
    CHECK(integers_of(typed(2, {2}, 5, packed, {0, 255})) == std::vector<int64_t>{0, 255});
    CHECK(integers_of(typed(3, {2}, 5, packed, {-128, 127})) == std::vector<int64_t>{-128, 127});
    CHECK(integers_of(typed(4, {1}, 5, packed, {65535})) == std::vector<int64_t>{65535});
    CHECK(integers_of(typed(5, {1}, 5, packed, {-32768})) == std::vector<int64_t>{-32768});
    CHECK(integers_of(typed(6, {1}, 5, packed, {-7})) == std::vector<int64_t>{-7});
    CHECK(integers_of(typed(7, {2}, 7, packed, {-1, int64_t{1} << 40})) ==
          std::vector<int64_t>{-1, int64_t{1} << 40});
    CHECK(integers_of(typed(9, {2}, 5, packed, {1, 0})) == std::vector<int64_t>{1, 0});
    CHECK(integers_of(typed(12, {1}, 11, packed, {4294967295})) ==
          std::vector<int64_t>{4294967295});
    // 16-bit floats as their bits: 1.5, -2^-24 (the least subnormal), and 3.140625 as bfloat16
    CHECK(floats_of(typed(10, {2}, 5, packed, {0x3e00, 0x8001})) ==
          std::vector<float>{1.5f, -std::ldexp(1.0f, -24)});
    CHECK(floats_of(typed(16, {1}, 5, packed, {0x4049})) == std::vector<float>{3.140625f});
    // two numbers of 4 bits in each byte, the first in the low half
    CHECK(integers_of(typed(22, {3}, 5, packed, {0xf7, 0x08})) == std::vector<int64_t>{7, -1, -8});
    CHECK(integers_of(typed(21, {3}, 5, packed, {0xf7, 0x08})) == std::vector<int64_t>{7, 15, 8});
  }
  CHECK(integers_of(read_tensor(onnx_integers("t", {2, 1}, {3, -4}))) ==
        std::vector<int64_t>{3, -4});
  CHECK(read_tensor(onnx_floats("t", {0, 3}, {})).elements() == 0);
  CHECK(floats_of(read_tensor(onnx_floats("t", {}, {2.0f}))) == std::vector<float>{2.0f});
}

TEST_CASE("a tensor that lies about its elements is refused", "[layers][onnx]") {
  const auto refused = [](const Proto& tensor, const char* text) {
    QUANTRAIN_CHECK_ERROR(read_tensor(tensor), DataError, text);
  };
  refused(onnx_tensor("t", 1, {2, 2}),
          "\"t\" has 0 bytes of elements, but its shape and type "
          "(float) need 16");
  refused(onnx_floats("t", {3}, {1, 2}), "has 8 bytes of elements");
  refused(onnx_floats("t", {1}, {1, 2}), "has 8 bytes of elements");
  refused(onnx_tensor("t", 6, {1}).integer(5, 1).integer(5, 2), "has 8 bytes of elements");
  refused(onnx_floats("t", {int64_t{1} << 40, int64_t{1} << 40}, {}), "overflows");
  refused(onnx_floats("t", {int64_t{1} << 50}, {}), "has 0 bytes of elements");
  refused(onnx_floats("t", {-1}, {}), "negative extent");
  refused(onnx_floats("t", {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1}), "more than 8 axes");
  refused(onnx_tensor("t", 8, {1}).text(6, "word"), "of type string, which are not read");
  refused(onnx_tensor("t", 14, {1}).text(9, "12345678"), "of type complex64");
  refused(onnx_tensor("t", 99, {1}).text(9, "1"), "of type unknown");
  refused(onnx_tensor("t", 0, {1}).text(9, "1"), "of type undefined");
  refused(onnx_tensor("t", 2, {1}).integer(5, 256), "is not of type uint8");
  refused(onnx_tensor("t", 9, {1}).integer(5, 2), "is not of type bool");
  refused(onnx_tensor("t", 6, {1}).integer(5, int64_t{1} << 31), "is not of type int32");
  refused(onnx_tensor("t", 1, {1}).text(4, "123"), "not a whole number of elements");
  refused(onnx_tensor("t", 1, {1}).integer(4, 1), "not a list of numbers of this size");
  refused(onnx_floats("", {1}, {1}), "an initializer has no name");
  QUANTRAIN_CHECK_ERROR(
      onnx::floats_of(read_tensor(onnx_tensor("t", 11, {1}).text(9, raw_bytes<double>({1e300})))),
      DataError,
      "beyond what a float32 can hold");
  QUANTRAIN_CHECK_ERROR(onnx::integers_of(read_tensor(onnx_floats("t", {1}, {1}))),
                        DataError,
                        "of type float, expected integers");
  QUANTRAIN_CHECK_ERROR(onnx::integers_of(read_tensor(onnx_tensor("t", 13, {1}).integer(11, -1))),
                        DataError,
                        "beyond int64");
}

TEST_CASE("a file that protobuf would not accept is refused", "[layers][onnx]") {
  const auto refused = [](const Proto& file, const char* text) {
    QUANTRAIN_CHECK_ERROR(onnx::parse_model(file.file(), "m.onnx"), DataError, text);
  };
  const Proto good{std::string(reinterpret_cast<const char*>(onnx_model(onnx_gemm()).data()),
                               onnx_model(onnx_gemm()).size())};
  const auto after = [&](const Proto& more) { return Proto{good.bytes + more.bytes}; };
  refused({}, "is no ONNX model: it has no graph");
  refused({"not a model at all"}, "m.onnx: the model");
  refused(after({std::string(11, '\xff')}), "a number of more than 64 bits");
  refused(after({"\x08\x80\x80\x80"}), "truncated");
  refused(after({"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"}), "more than 64 bits");
  refused(after(Proto().key(1, 2).varint(uint64_t{1} << 32)), "is longer than what is left");
  refused(after(Proto().key(1, 2).varint(~uint64_t{0})), "is longer than what is left");
  refused(after(Proto().varint(uint64_t{1} << 35 | 8)), "a number that no field can have");
  refused(after(Proto().varint(0)), "a number that no field can have");
  refused(after(Proto().key(1, 3)), "a wire type that ONNX does not use");
  refused(after(Proto().key(1, 7)), "a wire type that ONNX does not use");
  refused(after(Proto().text(1, "8")), "field 1: is not an integer");
  refused(after(Proto().integer(2, 1)), "field 2: is not a text");
  refused(after(Proto().text(2, "\xc0\x80")), "is not UTF-8");
  refused(after(Proto().message(7, {})), "has two graphs");
  refused(after(Proto().number(8, 1.0f)), "is not a text, bytes or a message");
  CHECK_NOTHROW(onnx::parse_model(after(Proto().text(77, "unknown").number(78, 1)).file(), "m"));
}

TEST_CASE("each truncation of a file is an error or a smaller model", "[layers][onnx]") {
  const std::vector<uint8_t> whole = onnx_model(onnx_gemm());
  int refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    try {
      onnx::check_model(onnx::parse_model({whole.data(), size}, "m.onnx"));
    } catch (const DataError&) {
      ++refused;
    }
  }
  // The operator set comes last: without it, the version is unknown.
  CHECK(refused == static_cast<int>(whole.size()));
}

TEST_CASE("texts are UTF-8 by the letter of the standard", "[layers][onnx]") {
  using onnx::is_utf8;
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  CHECK(is_utf8("\xed\x9f\xbf\xf4\x8f\xbf\xbf"));
  for (const char* const bad : {"\x80",
                                "\xc3",
                                "\xc1\xbf",
                                "\xe0\x9f\xbf",
                                "\xed\xa0\x80",
                                "\xe2\x82",
                                "\xf0\x8f\xbf\xbf",
                                "\xf4\x90\x80\x80",
                                "\xf5\x80\x80\x80",
                                "\xe2\x28\xa1",
                                "\xf0\x9f\x98\x28"})
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("versions outside the range are refused", "[layers][onnx]") {
  const auto with = [](int64_t opset, int64_t ir_version) {
    OnnxParts parts = onnx_gemm();
    parts.opset = opset;
    parts.ir_version = ir_version;
    onnx::check_model(parsed(parts));
  };
  CHECK_NOTHROW(with(7, 3));
  CHECK_NOTHROW(with(25, 13));
  QUANTRAIN_CHECK_ERROR(with(6, 3), DataError, "has operator set 6, expected 7 to 25");
  QUANTRAIN_CHECK_ERROR(with(26, 10), DataError, "has operator set 26");
  QUANTRAIN_CHECK_ERROR(with(17, 2), DataError, "format version (IR) 2, expected 3 to 13");
  QUANTRAIN_CHECK_ERROR(with(17, 14), DataError, "format version (IR) 14");
}

TEST_CASE("a graph whose wiring is broken is refused", "[layers][onnx]") {
  const auto refused = [](const OnnxParts& parts, const char* text) {
    QUANTRAIN_CHECK_ERROR(onnx::check_model(parsed(parts)), DataError, text);
  };
  const auto nodes = [](std::vector<Proto> list) {
    OnnxParts parts = onnx_gemm();
    parts.nodes = std::move(list);
    return parts;
  };
  refused(nodes({onnx_node("Relu", {"z"}, {"y"})}),
          "Relu at y reads \"z\", which no node, input or initializer makes");
  refused(nodes({onnx_node("Relu", {"y"}, {"y"})}), "itself or a later node makes");
  refused(nodes({onnx_node("Relu", {"b2"}, {"y"}), onnx_node("Relu", {"y"}, {"b2"})}),
          "Relu at y reads \"b2\", which itself or a later node makes");
  refused(nodes({onnx_node("Relu", {"x"}, {"y"}), onnx_node("Relu", {"x"}, {"y"})}),
          "the value \"y\" is made twice");
  refused(nodes({onnx_node("Relu", {"x"}, {"x"}), onnx_node("Relu", {"x"}, {"y"})}),
          "the value \"x\" is made twice");
  refused(nodes({onnx_node("Relu", {"x"}, {"w"}), onnx_node("Relu", {"x"}, {"y"})}),
          "the value \"w\" is made twice");
  refused(nodes({onnx_node("Relu", {"x"}, {"z"})}), "nothing makes the output \"y\"");
  refused(nodes({}), "nothing makes the output \"y\"");
  OnnxParts parts = onnx_gemm();
  parts.inputs.push_back(onnx_value("x", {1}));
  refused(parts, "the input \"x\" is made twice");
  parts = onnx_gemm();
  parts.initializers.push_back(onnx_floats("w", {1}, {1}));
  refused(parts, "the initializer \"w\" is made twice");
  parts = onnx_gemm();
  parts.outputs.clear();
  refused(parts, "has no output");
  // An input with a default, absent inputs, and outputs that nobody reads are fine.
  parts = onnx_gemm();
  parts.inputs.push_back(onnx_value("w", {2, 3}));
  parts.nodes.push_back(onnx_node("Dropout", {"x", "", ""}, {"kept", ""}));
  onnx::check_model(parsed(parts));
}

TEST_CASE("a node without operator, output or names is refused", "[layers][onnx]") {
  const auto refused = [](const Proto& node, const char* text) {
    OnnxParts parts = onnx_gemm();
    parts.nodes.push_back(node);
    QUANTRAIN_CHECK_ERROR(parsed(parts), DataError, text);
  };
  refused(Proto().text(2, "z"), "a node has no operator");
  refused(Proto().text(4, "Relu"), "a node has no output: Relu");
  refused(onnx_node("Relu", {"x"}, {"z"}, {onnx_attribute("a", 1.0f), onnx_attribute("a", 2.0f)}),
          "two attributes are named a");
  refused(onnx_node("Relu", {"x"}, {"z"}, {Proto().integer(20, 1)}), "an attribute has no name");
  refused(onnx_node("Relu", {"x"}, {"z"}, {Proto().text(1, "t").integer(20, 4)}),
          "the attribute t lacks its tensor");
  refused(onnx_node("Relu", {"x"}, {"z"}, std::vector<Proto>(300, Proto())), "has no name");
  std::vector<Proto> many;
  for (int i = 0; i < 300; ++i) many.push_back(onnx_attribute("a" + std::to_string(i), 1.0f));
  refused(onnx_node("Relu", {"x"}, {"z"}, many), "more than 256 attributes");
  OnnxParts parts = onnx_gemm();
  parts.inputs.push_back(onnx_value("deep", std::vector<int64_t>(9, 1)));
  QUANTRAIN_CHECK_ERROR(parsed(parts), DataError, "more than 8 axes");
}

TEST_CASE("a file of many parts is refused before it takes much memory", "[layers][onnx]") {
  Proto graph;
  const Proto operator_set = Proto().integer(2, 17);
  std::string many;
  const std::string one = Proto().message(8, Proto()).bytes;
  for (int64_t i = 0; i <= onnx::ReadBudget::kMostMessages; ++i) many += one;
  QUANTRAIN_CHECK_ERROR(
      onnx::parse_model(Proto{many}.file(), "m.onnx"), DataError, "has more than 1048576 parts");
}

Proto entry(const char* key, const std::string& value) {
  return Proto().text(1, key).text(2, value);
}

/// Writes a model to the folder that has external data, and reads these.
std::vector<float> read_far(const TemporaryFolder& folder,
                            const std::string& location,
                            const std::string& offset,
                            const std::string& length) {
  Proto tensor = onnx_tensor("far", 1, {2}).integer(14, 1).message(13, entry("location", location));
  if (!offset.empty()) tensor.message(13, entry("offset", offset));
  if (!length.empty()) tensor.message(13, entry("length", length));
  OnnxParts parts = onnx_gemm();
  parts.initializers.push_back(tensor);
  const std::vector<uint8_t> bytes = onnx_model(parts);
  write_test_file(folder / "m.onnx", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return onnx::floats_of(onnx::read_model(folder / "m.onnx").graph.initializers.back());
}

TEST_CASE("external data are read from the model's own folder", "[layers][onnx]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "data");
  const auto at = [&](const std::string& location,
                      const std::string& offset = "4",
                      const std::string& length = "8") {
    return read_far(folder, location, offset, length);
  };
  const std::string weights = raw_bytes<float>({1, 2, 3});
  write_test_file(folder / "weights", weights);
  write_test_file(folder / "data/weights", weights);
  write_test_file(folder / "other", "");
  const std::vector<float> expected{2, 3};
  CHECK(at("weights") == expected);
  CHECK(at("data/weights") == expected);
  CHECK(at("./data//weights") == expected);
  CHECK(at("weights", "4", "") == expected);
  CHECK(at("weights", "", "8") == std::vector<float>{1, 2});

  const auto refused = [&](const std::string& location,
                           const char* text,
                           const std::string& offset = "4",
                           const std::string& length = "8") {
    QUANTRAIN_CHECK_ERROR(at(location, offset, length), DataError, text);
  };
  refused("", "has no location");
  refused(".", "names no file");
  refused("/etc/passwd", "is absolute");
  refused("../weights", "climbs out of the folder");
  refused("data/../../weights", "climbs out of the folder");
  refused(std::string("weights\0x", 9), "has a zero byte");
  refused("missing", "cannot open missing");
  refused("data", "is not a regular file");
  refused("weights/x", "cannot open weights/x");
  refused("weights", "ends after weights, which has 12 bytes", "8");
  refused("weights", "ends after weights", "9223372036854775807");
  refused("weights", "offset \"-4\" is not a size", "-4");
  refused("weights", "offset \"4x\" is not a size", "4x");
  refused("weights", "has 12 bytes, but its shape and type need 8", "0", "12");

  // Many tensors that name the same bytes would take more memory than the files have.
  OnnxParts parts = onnx_gemm();
  for (const char* const name : {"one", "two"}) {
    parts.initializers.push_back(
        onnx_tensor(name, 1, {3}).integer(14, 1).message(13, entry("location", "weights")));
  }
  const std::vector<uint8_t> bytes = onnx_model(parts);
  write_test_file(folder / "m.onnx", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  QUANTRAIN_CHECK_ERROR(onnx::read_model(folder / "m.onnx"), DataError, "more is read than it has");
  QUANTRAIN_CHECK_ERROR(onnx::parse_model(bytes, "m"), DataError, "the model was read from memory");
}

TEST_CASE("external data are not read through links, nor from pipes", "[layers][onnx]") {
  if (test::left_out_on_windows("only users with a special right may make links")) return;
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "data");
  const std::string weights = raw_bytes<float>({1, 2, 3});
  write_test_file(folder / "weights", weights);
  write_test_file(folder / "data/weights", weights);
  const auto refused = [&](const char* location, const char* text) {
    QUANTRAIN_CHECK_ERROR(read_far(folder, location, "4", "8"), DataError, text);
  };
  std::filesystem::create_symlink(folder / "weights", folder / "link");
  std::filesystem::create_directory_symlink(folder / "data", folder / "folder");
  test::make_pipe(folder / "pipe");
  refused("link", "is a symbolic link");
  CHECK_THROWS_AS(read_far(folder, "folder/weights", "4", "8"), DataError);
  refused("pipe", "is not a regular file");
}

}  // namespace
}  // namespace quantrain
