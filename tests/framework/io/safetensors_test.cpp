#include "framework/io/safetensors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/io/half.hpp"
#include "tests/catch.hpp"
#include "tests/system.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::TemporaryFolder;

template <class T>
std::span<const T> view(const std::vector<T>& values) {
  return values;
}

TensorFile example() {
  TensorFile file;
  file.metadata = {{"format", "test"}, {"text", "quotes \" and\nlines \xc3\xa4"}};
  file.add("bytes", {3}, view<uint8_t>({0, 127, 255}));
  file.add("doubles", {1, 2}, view<double>({1.0 / 3.0, -2.5}));
  file.add("floats", {2, 2}, view<float>({1.0f, -0.0f, 3.5f, 1e-30f}));
  file.add("longs", {2}, view<int64_t>({int64_t{-1} << 40, 7}));
  file.add("integers", {2}, view<int32_t>({-2147483647, 5}));
  file.add("signed", {2, 1, 1}, view<int8_t>({-128, 127}));
  file.add("scalar", {}, view<float>({42.0f}));
  file.add("empty", {0, 4}, view<float>({}));
  return file;
}

std::vector<uint8_t> file_bytes(const std::string& header, const std::string& data = "") {
  const uint64_t size = header.size();
  std::vector<uint8_t> bytes(8 + header.size() + data.size());
  std::memcpy(bytes.data(), &size, 8);
  std::copy(header.begin(), header.end(), bytes.begin() + 8);
  std::copy(data.begin(), data.end(), bytes.end() - static_cast<std::ptrdiff_t>(data.size()));
  return bytes;
}

/// Checks that load_safetensors() rejects a file of these bytes, and that parse_safetensors()
/// rejects them in memory. The errors name the source and contain `text`.
void check_rejected(const std::vector<uint8_t>& bytes, const std::string& text) {
  const TemporaryFolder folder;
  test::write_bytes(folder / "hostile.safetensors", bytes);
  QUANTRAIN_CHECK_ERROR(load_safetensors(folder / "hostile.safetensors"), DataError, text);
  QUANTRAIN_CHECK_ERROR(
      load_safetensors(folder / "hostile.safetensors"), DataError, "hostile.safetensors: ");
  QUANTRAIN_CHECK_ERROR(parse_safetensors(bytes, "the flash"), DataError, text);
  QUANTRAIN_CHECK_ERROR(
      parse_safetensors(bytes, "the flash"), DataError, "[safetensors] the flash: ");
}

void check_rejected(const std::string& header, const std::string& data, const std::string& text) {
  INFO(header);
  check_rejected(file_bytes(header, data), text);
}

void check_same(const TensorFile& file, const TensorFile& expected) {
  CHECK(file.metadata == expected.metadata);
  CHECK(file.entries().size() == expected.entries().size());
  for (const TensorFile::Entry& entry : expected.entries()) {
    CHECK(file.at(entry.name).dtype == entry.dtype);
    CHECK(file.at(entry.name).shape == entry.shape);
    CHECK(file.at(entry.name).bytes == entry.bytes);
  }
}

}  // namespace

TEST_CASE("a safetensors file returns what was saved in it", "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", example());
  const TensorFile file = load_safetensors(folder / "a.safetensors");
  check_same(file, example());
  CHECK(file.values<double>("doubles") == std::vector<double>{1.0 / 3.0, -2.5});
  CHECK(file.values<int64_t>("longs") == std::vector<int64_t>{int64_t{-1} << 40, 7});
  CHECK(file.values<int32_t>("integers") == std::vector<int32_t>{-2147483647, 5});
  CHECK(file.values<int8_t>("signed") == std::vector<int8_t>{-128, 127});
  CHECK(file.values<uint8_t>("bytes") == std::vector<uint8_t>{0, 127, 255});
  CHECK(file.values<float>("scalar") == std::vector<float>{42.0f});
  CHECK(file.values<float>("empty").empty());
}

TEST_CASE("a safetensors file is read from memory at any alignment", "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", example());
  std::vector<uint8_t> bytes = test::read_bytes(folder / "a.safetensors");
  check_same(parse_safetensors(bytes, "memory"), example());
  bytes.insert(bytes.begin(), 0);
  check_same(parse_safetensors(std::span(bytes).subspan(1), "memory"), example());
}

TEST_CASE("a file without entries or metadata is valid", "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", TensorFile());
  CHECK(load_safetensors(folder / "a.safetensors").entries().empty());
  CHECK(test::read_bytes(folder / "a.safetensors") == file_bytes("{}      "));
}

TEST_CASE("the same content gives the same bytes, with aligned data", "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", example());
  save_safetensors(folder / "b.safetensors", load_safetensors(folder / "a.safetensors"));
  const std::vector<uint8_t> bytes = test::read_bytes(folder / "a.safetensors");
  CHECK(bytes == test::read_bytes(folder / "b.safetensors"));
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  CHECK(header % 8 == 0);
  CHECK(folder.files() == 2);
}

TEST_CASE("a safetensors file that is truncated anywhere is rejected", "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", example());
  const std::vector<uint8_t> bytes = test::read_bytes(folder / "a.safetensors");
  for (size_t size = 0; size < bytes.size(); ++size) {
    test::write_bytes(folder / "cut.safetensors", std::span(bytes).first(size));
    CHECK_THROWS_AS(load_safetensors(folder / "cut.safetensors"), DataError);
    CHECK_THROWS_AS(parse_safetensors(std::span(bytes).first(size), "memory"), DataError);
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  check_rejected(longer, "bytes of data");
}

TEST_CASE("if a byte of the header changes, a safetensors file loads or is rejected",
          "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a.safetensors", example());
  const std::vector<uint8_t> bytes = test::read_bytes(folder / "a.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  for (size_t i = 0; i < 8 + header; ++i) {
    for (const uint8_t value : std::vector<uint8_t>{0x00, 0x22, 0x39, 0x7b, 0xff}) {
      std::vector<uint8_t> changed = bytes;
      changed[i] = value;
      test::write_bytes(folder / "b.safetensors", changed);
      const auto loads = [](const auto& load) {
        try {
          load();
          return true;
        } catch (const DataError&) {  // any other exception fails the test
          return false;
        }
      };
      CHECK(loads([&] { load_safetensors(folder / "b.safetensors"); }) ==
            loads([&] { parse_safetensors(changed, "memory"); }));
    }
  }
}

TEST_CASE("the header length in a safetensors file is checked before it is used",
          "[io][safetensors]") {
  const auto rejected = [](const std::vector<uint8_t>& bytes, const std::string& text) {
    check_rejected(bytes, text);
  };
  rejected({}, "only 0 bytes, too short");
  rejected({1, 2, 3, 4, 5, 6, 7}, "only 7 bytes, too short");
  rejected({0, 0, 0, 0, 0, 0, 0, 0}, "the header does not begin with {");
  rejected({255, 255, 255, 255, 255, 255, 255, 255, '{', '}'}, "18446744073709551615, exceeds");
  rejected({1, 0, 0, 1, 0, 0, 0, 0, '{', '}'}, "16777217, exceeds 16777216");
  rejected({3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, "truncated: a header of 3 bytes in a file of 10");
}

TEST_CASE("a safetensors header that violates the format is rejected", "[io][safetensors]") {
  check_rejected("{", "", "the header is not JSON");
  check_rejected("\xff\xfe", "", "the header does not begin with {");
  check_rejected("{\"a\":\"\xff\"}", "", "the header is not JSON");
  check_rejected("{} x", "", "the header is not JSON");
  for (const char* text : {"", "[]", "1", " {}", "\xef\xbb\xbf{}"})
    check_rejected(text, "", "the header does not begin with {");
  check_rejected(std::string("{}\0", 3), "", "the header is not JSON: it has a zero byte");
  check_rejected(std::string("{}\0{\"a\":1}", 10), "", "it has a zero byte");
  check_rejected("{\"a\":" + std::string(100000, '['), "", "nests deeper than 4 levels");
  check_rejected("{\"a\":" + std::string(50000, '[') + std::string(50000, ']') + "}",
                 "",
                 "nests deeper than 4 levels");
  check_rejected(
      R"({"a":{"dtype":[[[[]]]],"shape":[],"data_offsets":[0,1]}})", "x", "nests deeper");
  check_rejected(R"({"__metadata__":1})", "", "__metadata__ is not an object");
  check_rejected(
      R"({"__metadata__":{"a":1}})", "", "__metadata__ has a member that is not a string");
  check_rejected(R"({"__metadata__":{"a":"1","a":"2"}})", "", "the key \"a\" twice");
  check_rejected(R"({"a":[]})", "", "needs dtype, shape and data_offsets");
  check_rejected(R"({"a":{"dtype":"U8","shape":[1]}})", "x", "needs dtype, shape and data_offsets");
  check_rejected(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0}})", "x", "and nothing else");
  check_rejected(R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})",
                 "xx",
                 "unsupported dtype \"F8_E4M3\" (floats must be F32, F16 or BF16)");
  check_rejected(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,3]}})",
                 "xxx",
                 "F16 of shape [1] does not match its 3 bytes");
  check_rejected(
      R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", "x", "unsupported dtype 8");
  check_rejected(R"({"a":{"dtype":"U8","shape":[1],"dtype":"I8","data_offsets":[0,1]}})",
                 "x",
                 "the key \"dtype\" twice");
}

TEST_CASE("shapes and offsets that do not fit are rejected", "[io][safetensors]") {
  const auto u8 = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  check_rejected(u8("1", "[0,1]"), "x", "shape is not a list");
  check_rejected(u8("[-1]", "[0,1]"), "x", "shape has -1 where a count is expected");
  check_rejected(u8("[1.0]", "[0,1]"), "x", "shape has 1.0 where");
  check_rejected(u8("[\"1\"]", "[0,1]"), "x", "shape has \"1\" where");
  check_rejected(u8("[18446744073709551615]", "[0,1]"), "x", "where a count is expected");
  check_rejected(u8("[1,1,1,1,1,1,1,1,1]", "[0,1]"), "x", "rank 9 exceeds 8");
  check_rejected(u8("[4294967296,4294967296]", "[0,0]"), "", "too many elements");
  check_rejected(u8("[2]", "[0,1]"), "x", "U8 of shape [2] does not match its 1 bytes");
  check_rejected(u8("[]", "[0,0]"), "", "U8 of shape [] does not match its 0 bytes");
  check_rejected(u8("[1]", "0"), "x", "data_offsets is not a list");
  check_rejected(u8("[1]", "[0]"), "x", "are not a range of the 1 bytes");
  check_rejected(u8("[1]", "[0,1,2]"), "x", "are not a range of the 1 bytes");
  check_rejected(u8("[1]", "[1,0]"), "x", "are not a range of the 1 bytes");
  check_rejected(u8("[2]", "[0,2]"), "x", "are not a range of the 1 bytes");
  check_rejected(u8("[1]", "[-1,0]"), "x", "data_offsets has -1 where");
  check_rejected(
      u8("[1]", "[9223372036854775807,9223372036854775808]"), "x", "where a count is expected");
  check_rejected(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,5]}})",
                 "12345",
                 "does not match its 5 bytes");
  check_rejected(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})",
                 "",
                 "does not match its 0 bytes");
}

TEST_CASE("entries that overlap, leave holes or repeat a name are rejected", "[io][safetensors]") {
  const auto two = [](const char* first, const char* second, const char* name) {
    return std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") + first + R"(},")" +
           name + R"(":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
  };
  check_rejected(
      two("[0,2]", "[1,3]", "b"), "xyz", "\"b\": starts at byte 1 and overlaps data up to 2");
  check_rejected(two("[0,2]", "[0,2]", "b"), "xy", "overlaps data up to 2");
  check_rejected(
      two("[0,2]", "[3,5]", "b"), "vwxyz", "\"b\": starts at byte 3 and leaves a hole from 2");
  check_rejected(
      two("[1,3]", "[3,5]", "b"), "vwxyz", "\"a\": starts at byte 1 and leaves a hole from 0");
  check_rejected(two("[0,2]", "[2,4]", "b"), "vwxyz", "entries cover 4 of 5 bytes");
  check_rejected(two("[0,2]", "[2,4]", "a"), "wxyz", "the key \"a\" twice");
  check_rejected("{}", "x", "entries cover 0 of 1 bytes");
}

TEST_CASE("entries are read by name and type", "[io][safetensors]") {
  const TensorFile file = example();
  CHECK(file.contains("floats"));
  CHECK_FALSE(file.contains("float"));
  QUANTRAIN_CHECK_ERROR(file.at("weight"), DataError, "no entry \"weight\"");
  QUANTRAIN_CHECK_ERROR(file.values<float>("bytes"), DataError, "\"bytes\" is U8, expected F32");
  QUANTRAIN_CHECK_ERROR(file.metadata_at("layout"), DataError, "no \"layout\"");
  CHECK(file.metadata_at("format") == "test");
}

TEST_CASE("entries that a file cannot represent are refused", "[io][safetensors]") {
  TensorFile file;
  file.add("a", {1}, view<float>({1.0f}));
  QUANTRAIN_CHECK_ERROR(
      file.add("a", {1}, view<float>({1.0f})), DataError, "two entries are named \"a\"");
  QUANTRAIN_CHECK_ERROR(file.add("__metadata__", {1}, view<float>({1.0f})), DataError, "reserved");
  QUANTRAIN_CHECK_ERROR(file.add("b", {3}, view<float>({1.0f})),
                        DataError,
                        "F32 of shape [3] does not match its 4 bytes");
  QUANTRAIN_CHECK_ERROR(file.add({"b", DType::kF32, {1}, std::vector<uint8_t>(5)}),
                        DataError,
                        "F32 of shape [1] does not match its 5 bytes");
  CHECK(file.entries().size() == 1);

  const TemporaryFolder folder;
  TensorFile latin;
  latin.add("\xe4", {1}, view<float>({1.0f}));
  QUANTRAIN_CHECK_ERROR(
      save_safetensors(folder / "a.safetensors", latin), DataError, "cannot be written as JSON");
  TensorFile wordy;
  wordy.metadata["text"] = std::string(16 << 20, 'x');
  QUANTRAIN_CHECK_ERROR(
      save_safetensors(folder / "a.safetensors", wordy), DataError, "bytes exceeds 16777216");
  TensorFile many;
  for (int i = 0; i < 100'000; ++i) many.add(std::to_string(i), {0}, std::span<const float>());
  QUANTRAIN_CHECK_ERROR(save_safetensors(folder / "a.safetensors", many),
                        DataError,
                        "has more than 1048576 values and keys");
  CHECK(folder.files() == 0);
}

TEST_CASE("if a name is too long to be quoted, the error gives its length", "[io][safetensors]") {
  const std::string longest(16384, 'n');
  const std::string too_long = longest + "n";
  const auto header = [](const std::string& name) {
    return "{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  };
  CHECK(parse_safetensors(file_bytes(header(longest), "x"), "test").contains(longest));
  check_rejected(header(too_long), "x", "a name of 16385 bytes exceeds 16384");
  TensorFile file;
  QUANTRAIN_CHECK_ERROR(file.add({too_long, DType::kU8, Shape{0}, {}}),
                        DataError,
                        "[safetensors] a name of 16385 bytes exceeds 16384");
}

TEST_CASE("a missing file and a folder are errors that name the path", "[io][safetensors]") {
  const TemporaryFolder folder;
  QUANTRAIN_CHECK_ERROR(
      load_safetensors(folder / "none"), DataError, "none: cannot be opened: No such file");
  QUANTRAIN_CHECK_ERROR(load_safetensors(folder.path()), DataError, "is not a regular file");
}

TEST_CASE("a file with more bytes than its header describes is refused before it is read",
          "[io][safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "a", example());
  test::grow_file(folder / "a", int64_t{1} << 36);  // too much for most machines
  QUANTRAIN_CHECK_ERROR(load_safetensors(folder / "a"), DataError, "bytes of data");
}

TEST_CASE("floats of 16 bits are read as float32", "[io][safetensors]") {
  const auto words = [](const std::vector<uint16_t>& all) {
    std::vector<uint8_t> bytes;
    for (const uint16_t word : all) {
      bytes.push_back(static_cast<uint8_t>(word));
      bytes.push_back(static_cast<uint8_t>(word >> 8));
    }
    return bytes;
  };
  // Values from IEEE 754: 1, -2, the largest, the smallest normal, the smallest and the largest
  // subnormal, 1/3, -0, infinity, NaN.
  const std::vector<uint16_t> f16{
      0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x03ff, 0x3555, 0x8000, 0x7c00, 0x7e01};
  const std::vector<uint16_t> bf16{0x3f80, 0xc000, 0x7f7f, 0x0080, 0x8001};
  TensorFile file;
  file.add({"half", DType::kF16, Shape{2, 5}, words(f16)});
  file.add({"brain", DType::kBF16, Shape{5}, words(bf16)});
  file.add<float>("single", Shape{1}, std::vector<float>{0.1f});
  file.add<int32_t>("integer", Shape{1}, std::vector<int32_t>{1});
  const test::TemporaryFolder folder;
  save_safetensors(folder / "half", file);
  const TensorFile loaded = load_safetensors(folder / "half");

  const std::vector<float> half = float_values(loaded, "half");
  REQUIRE(half.size() == 10);
  CHECK(half[0] == 1.0f);
  CHECK(half[1] == -2.0f);
  CHECK(half[2] == 65504.0f);
  CHECK(half[3] == std::ldexp(1.0f, -14));
  CHECK(half[4] == std::ldexp(1.0f, -24));
  CHECK(half[5] == std::ldexp(1023.0f, -24));
  CHECK(half[6] == 1365.0f / 4096.0f);
  CHECK(half[7] == 0.0f);
  CHECK(std::signbit(half[7]));
  CHECK(half[8] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(half[9]));
  const std::vector<float> brain = float_values(loaded, "brain");
  REQUIRE(brain.size() == 5);
  CHECK(brain[0] == 1.0f);
  CHECK(brain[1] == -2.0f);
  CHECK(brain[2] == std::ldexp(255.0f, 120));
  CHECK(brain[3] == std::ldexp(1.0f, -126));
  CHECK(brain[4] == -std::ldexp(1.0f, -133));
  CHECK(float_values(loaded, "single") == std::vector<float>{0.1f});
  QUANTRAIN_CHECK_ERROR(
      float_values(loaded, "integer"), DataError, "\"integer\" is I32, expected F32, F16 or BF16");
  QUANTRAIN_CHECK_ERROR(loaded.values<float>("half"), DataError, "\"half\" is F16, expected F32");
}

TEST_CASE("float16 and bfloat16 become floats exactly", "[io][safetensors]") {
  CHECK(from_float16(0x0000) == 0.0f);
  CHECK(std::signbit(from_float16(0x8000)));
  CHECK(from_float16(0x7bff) == 65504.0f);
  CHECK(from_float16(0x0400) == std::ldexp(1.0f, -14));
  CHECK(from_float16(0x03ff) == std::ldexp(1023.0f, -24));
  CHECK(from_float16(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(from_float16(0x7e00)));
  CHECK(from_float16(0x3555) == 0.333251953125f);
  CHECK(from_bfloat16(0xff80) == -std::numeric_limits<float>::infinity());
  CHECK(from_bfloat16(0x0001) == std::ldexp(1.0f, -133));
}

}  // namespace quantrain
