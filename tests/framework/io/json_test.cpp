#include "framework/io/json.hpp"

#include <cfenv>
#include <ctime>
#include <limits>
#include <sstream>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/sanitized.hpp"

namespace quantrain {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::string why(const std::string& text, const JsonLimits& limits = {}) {
  try {
    const JsonDocument document(text, limits);
    return "";
  } catch (const JsonDocument::Malformed& what) {
    return what.text;
  }
}

std::string shown(const std::string& text) {
  const JsonDocument document(text);
  std::ostringstream stream;
  stream << document.root();
  return stream.str();
}

/// Processor time in seconds.
template <class F>
double seconds(const F& f) {
  const std::clock_t begin = std::clock();
  f();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("a JSON value reads only as its own type, except that an integer also reads as a real",
          "[io][json]") {
  const JsonDocument document(
      R"({"a": [1, -2, 3.5, true, null, "t\u00e4xt", 18446744073709551615, {}, []], "b": {"c": 1.0}})");
  const JsonValue root = document.root();
  REQUIRE(root.is_object());
  CHECK(root.size() == 2);
  REQUIRE(root.members().size() == 2);
  CHECK(root.members()[1].first == "b");
  CHECK_FALSE(root.find("c").has_value());
  const std::vector<JsonValue> a = root.find("a")->entries();
  REQUIRE(a.size() == 9);
  CHECK(a[0].integer(1, 1) == 1);
  CHECK_FALSE(a[0].integer(2, 9).has_value());
  CHECK_FALSE(a[0].boolean().has_value());
  CHECK(a[0].real() == 1.0);
  CHECK(a[1].integer(kLeast, kMost) == -2);
  CHECK(a[2].real() == 3.5);
  CHECK_FALSE(a[2].integer(kLeast, kMost).has_value());
  CHECK(a[3].boolean() == true);
  CHECK_FALSE(a[3].integer(kLeast, kMost).has_value());
  CHECK_FALSE(a[3].real().has_value());
  CHECK(a[4].is_null());
  CHECK(a[5].text() == "t\xc3\xa4xt");
  CHECK_FALSE(a[6].integer(kLeast, kMost).has_value());  // not truncated to int64_t
  CHECK(a[6].real() == 0x1p64);
  CHECK(a[7].is_object());
  CHECK(a[8].is_list());
  CHECK(a[8].entries().empty());
  CHECK_FALSE(root.find("b")->find("c")->integer(kLeast, kMost).has_value());
}

TEST_CASE("only a JSON list has entries, and only a JSON object has members", "[io][json]") {
  const JsonDocument document(R"([5, "text", [1], {"a": 1}])");
  for (const JsonValue value : document.root().entries()) {
    CHECK(value.entries().size() == (value.is_list() ? 1 : 0));
    CHECK(value.members().size() == (value.is_object() ? 1 : 0));
    CHECK(value.find("a").has_value() == value.is_object());
    CHECK(value.size() == (value.is_list() || value.is_object() ? 1 : 0));
  }
}

TEST_CASE("a JSON value prints as a short text, however large it is", "[io][json]") {
  CHECK(shown("[1, [2, 3], 4]") == "a list of 3");
  CHECK(shown("{\"a\": 1}") == "an object of 1");
  CHECK(shown("1.0") == "1.0");
  CHECK(shown("-7") == "-7");
  CHECK(shown("1e300") == "1e+300");
  CHECK(shown("null") == "null");
  CHECK(shown('"' + std::string(1000, 'x') + '"').size() == 62);
  // A character that the truncation would split is left out.
  CHECK(shown('"' + std::string(59, 'x') + "\xc3\xa4\"") == '"' + std::string(59, 'x') + '"');
}

TEST_CASE("JSON beyond a limit is refused before the document is built", "[io][json]") {
  CHECK(why("[[[]]]", {.depth = 3}).empty());
  CHECK(why("[[[[]]]]", {.depth = 3}) == "nests deeper than 3 levels");
  CHECK(why(std::string(1 << 20, '[')) == "nests deeper than 16 levels");
  CHECK(why("[1,2,3]", {.values = 4}).empty());
  CHECK(why("[1,2,3,4]", {.values = 4}) == "has more than 4 values and keys");
  CHECK(why("{\"a\":1,\"b\":2}", {.values = 4}) == "has more than 4 values and keys");
  CHECK(why("[1,2]", {.bytes = 5}).empty());
  CHECK(why("[1,2] ", {.bytes = 5}) == "has 6 bytes, the limit is 5");
}

TEST_CASE("text that is not JSON is refused with a short reason", "[io][json]") {
  for (const char* text :
       {"", "{", "nul", "[1,]", "{\"a\" 1}", "\"\xff\"", "1 2", "1e400", "NaN"}) {
    INFO(text);
    CHECK(why(text).rfind("is not JSON: ", 0) == 0);
  }
  CHECK(why(std::string("[1]\0[2]", 7)) == "is not JSON: it has a zero byte");
  CHECK(why("\xef\xbb\xbf[1]") == "is not JSON: it begins with a byte order mark");
  CHECK(why('"' + std::string(100000, 'x')).size() < 300);
  CHECK(why(R"({"a":1,"b":2,"a":3})") == "has the key \"a\" twice");
  CHECK(why(R"({"a":1,"b":{"a":2}})").empty());
  CHECK(why(R"([{"a":{"b":1,"c":[{}],"b":1}}])") == "has the key \"b\" twice");
}

TEST_CASE("the time to read JSON is proportional to its length", "[io][json]") {
  const auto of_keys = [](int keys) {
    std::string text = "{\"first\":0";
    for (int i = 0; i < keys; ++i) text += ",\"k" + std::to_string(i) + "\":{\"a\":[0]}";
    return text + '}';
  };
  const int keys = quantrain::test::kSanitized ? 2000 : 10000;
  const std::string short_text = of_keys(keys);
  const std::string long_text = of_keys(16 * keys);
  const double few = seconds([&] {
    for (int i = 0; i < 16; ++i) CHECK(why(short_text).empty());
  });
  const double many = seconds([&] { CHECK(why(long_text).empty()); });
  CHECK(many < 5 * few + 0.05);  // comparing each key with all others would take 16 * few
}

TEST_CASE("JsonReader checks each member and reports members that were not read", "[io][json]") {
  const JsonDocument document(
      R"({"n": 5, "large": 4294967296, "flag": true, "x": 0.5, "tenth": 0.1, "huge": 1e300, "name": "text",
          "list": [1, 2, 3], "mixed": [1, true]})");
  const auto reader = [&] { return JsonReader(document.root(), json_error<DataError>("here")); };
  CHECK(reader().integer("n", 0, 5) == 5);
  CHECK(reader().boolean("flag"));
  CHECK(reader().real("x") == 0.5);
  CHECK(reader().real("n") == 5.0);
  CHECK(reader().real32("x") == 0.5f);
  std::fesetround(FE_DOWNWARD);
  const float tenth = reader().real32("tenth");
  std::fesetround(FE_TONEAREST);
  CHECK(tenth == 0.1f);
  CHECK(reader().text("name") == "text");
  CHECK(reader().integers("list", 3, 1, 3) == std::vector<int64_t>{1, 2, 3});
  CHECK(reader().reals32("list", 3) == std::vector<float>{1.0f, 2.0f, 3.0f});
  QUANTRAIN_CHECK_ERROR(reader().integer("n", 0, 4),
                        DataError,
                        "[here] \"n\" is 5, expected a whole number in [0, 4]");
  QUANTRAIN_CHECK_ERROR(reader().integer("large", -5, 2147483647), DataError, "is 4294967296, exp");
  QUANTRAIN_CHECK_ERROR(reader().integer("x", 0, 4), DataError, "\"x\" is 0.5, expected a whole");
  QUANTRAIN_CHECK_ERROR(reader().integer("flag", 0, 4), DataError, "\"flag\" is true, expected a");
  QUANTRAIN_CHECK_ERROR(reader().boolean("n"), DataError, "is 5, expected true or false");
  QUANTRAIN_CHECK_ERROR(reader().real("flag"), DataError, "is true, expected a number");
  QUANTRAIN_CHECK_ERROR(
      reader().real32("huge"), DataError, "is 1e+300, which is beyond the range of float32");
  QUANTRAIN_CHECK_ERROR(reader().text("n"), DataError, "is 5, expected a string");
  QUANTRAIN_CHECK_ERROR(reader().list("n", 9), DataError, "is 5, expected a list");
  QUANTRAIN_CHECK_ERROR(reader().list("list", 2), DataError, "has 3 entries, expected at most 2");
  QUANTRAIN_CHECK_ERROR(reader().integers("mixed", 2, 0, 9), DataError, "\"mixed\" is true");
  QUANTRAIN_CHECK_ERROR(reader().at("none"), DataError, "[here] lacks \"none\"");
  QUANTRAIN_CHECK_ERROR(JsonReader(*document.root().find("n"), json_error<QuantError>("there")),
                        QuantError,
                        "[there] is 5, expected a JSON object");
  JsonReader some = reader();
  some.integer("n", 0, 5);
  QUANTRAIN_CHECK_ERROR(some.finish(), DataError, "has an unknown member \"large\"");
  for (const auto& [name, value] : document.root().members()) some.at(name);
  some.finish();
}

}  // namespace quantrain
