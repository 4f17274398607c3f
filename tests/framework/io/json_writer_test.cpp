#include "framework/io/json_writer.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

// Compares the writer with nlohmann_json.
namespace quantrain {
namespace {

using Json = nlohmann::ordered_json;

std::string written(std::string_view value) {
  JsonWriter json(json_error<DataError>("test"));
  json.write(value);
  return json.text();
}

std::string written(double value) {
  JsonWriter json;
  json.write(value);
  return json.text();
}

bool is_utf8(const std::string& text) {
  try {
    Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace

TEST_CASE("lists and objects are written as nlohmann_json writes them", "[io][json]") {
  for (const int indent : {-1, 0, 2}) {
    JsonWriter json(nullptr, indent);
    const auto values = [&] {
      json.object([] {});
      json.write(std::vector<int32_t>());
      json.write(nullptr);
      json.write(true);
      json.write("x");
    };
    json.object([&] {
      json.member("a", 1);
      json.member("b", std::array{1.5, -0.25});
      json.member("c", [&] { json.list(values); });
      json.member("d", false);
    });
    const Json same = {{"a", 1},
                       {"b", {1.5, -0.25}},
                       {"c", {Json::object(), Json::array(), nullptr, true, "x"}},
                       {"d", false}};
    CHECK(json.text() == same.dump(indent));
  }
}

TEST_CASE("every number is read back unchanged", "[io][json]") {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random.bits();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const Json read = Json::parse(written(value));
    REQUIRE(read.is_number_float());
    REQUIRE(read.get<double>() == value);
  }
  CHECK(written(1.0) == "1.0");
  CHECK(written(-0.0) == "-0.0");
  CHECK(written(1e300) == "1e+300");
  CHECK(written(std::nan("")) == "null");
  CHECK(written(std::numeric_limits<double>::infinity()) == "null");
  for (const int64_t value : {std::numeric_limits<int64_t>::min(),
                              int64_t{0},
                              int64_t{-7},
                              std::numeric_limits<int64_t>::max()}) {
    JsonWriter json;
    json.write(value);
    CHECK(Json::parse(json.text()).get<int64_t>() == value);
  }
}

TEST_CASE("texts are escaped, and bytes that are not UTF-8 are refused or replaced", "[io][json]") {
  // All texts of one and two bytes, and longer texts with bytes around every bound of
  // UTF-8. With sanitizers, only some first bytes, among them E0, ED, F0 and F4.
  std::vector<std::string> texts;
  for (int a = 0; a < 256; ++a) {
    texts.push_back({static_cast<char>(a)});
    if (quantrain::test::kSanitized && a % 8 != 0) continue;
    for (int b = 0; b < 256; ++b) texts.push_back({static_cast<char>(a), static_cast<char>(b)});
  }
  const int bounds[] = {0x22, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
  for (int a = 0xe0; a < 0x100; ++a) {
    if (quantrain::test::kSanitized && a % 4 != 0 && a != 0xed) continue;
    for (const int b : bounds) {
      for (const int c : bounds) {
        texts.push_back({static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)});
        for (const int d : bounds) {
          texts.push_back({static_cast<char>(a),
                           static_cast<char>(b),
                           static_cast<char>(c),
                           static_cast<char>(d)});
        }
      }
    }
  }
  int64_t refused = 0;
  for (const std::string& text : texts) {
    if (is_utf8(text)) {
      REQUIRE(written(text) == Json(text).dump());
    } else {
      ++refused;
      REQUIRE_THROWS_AS(written(text), DataError);
      JsonWriter json;
      json.write(text);
      REQUIRE_NOTHROW(Json::parse(json.text()));
    }
  }
  CHECK(refused > (quantrain::test::kSanitized ? 10000 : 50000));
  QUANTRAIN_CHECK_ERROR(written("abc\xff"), DataError, "byte 3 of a text is not UTF-8");
  JsonWriter json;
  json.write("a\xffz");
  CHECK(json.text() == "\"a\xef\xbf\xbdz\"");
}

}  // namespace quantrain
