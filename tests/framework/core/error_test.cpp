#include "framework/core/error.hpp"

#include "framework/core/printable.hpp"

#include <cstdio>
#include <type_traits>

#include "framework/core/shape.hpp"
#include "framework/core/version.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("an error names the operation, the problem and both values", "[core][error]") {
  const ShapeError error(
      "matmul", "inner dimensions differ: lhs ", Shape{4, 3}, ", rhs ", Shape{5, 2});
  CHECK(std::string(error.what()) == "[matmul] inner dimensions differ: lhs [4, 3], rhs [5, 2]");
}

TEST_CASE("every kind of error is an Error, and a data error is no quantization error",
          "[core][error]") {
  CHECK_THROWS_AS(throw ShapeError("a", "b"), Error);
  CHECK_THROWS_AS(throw GraphError("a", "b"), Error);
  CHECK_THROWS_AS(throw QuantError("a", "b"), Error);
  CHECK_THROWS_AS(throw DataError("a", "b"), Error);
  CHECK_THROWS_AS(throw ExportError("a", "b"), std::runtime_error);
  CHECK_FALSE(std::is_base_of_v<DataError, QuantError>);
}

TEST_CASE("the version is three numbers", "[core][version]") {
  int major = -1;
  int minor = -1;
  int patch = -1;
  char rest = 0;
  CHECK(std::sscanf(version(), "%d.%d.%d%c", &major, &minor, &patch, &rest) == 3);
  CHECK(major >= 0);
}

TEST_CASE("messages show nothing that a terminal obeys", "[core][error]") {
  const std::string name =
      "a\x1b[2J\rb\x07\xc2\x9b"
      "c\x7f\td";
  CHECK(std::string(DataError("file", name, ": no").what()) == "[file] a?[2J?b?\xc2?c??d: no");
  CHECK(std::string(DataError(name, "no").what()) == "[a?[2J?b?\xc2?c??d] no");
  CHECK(std::string(DataError("", "no").what()) == "[unnamed] no");
  CHECK(std::string(DataError("list", "of\ntwo").what()) == "[list] of\ntwo");
  CHECK(printable("\xc2\xb5\xc3\x9f\xc4\x80") == "\xc2\xb5\xc3\x9f\xc4\x80");
}

TEST_CASE("messages quote at most a line", "[core][error]") {
  const std::string name(8'900'000, 'x');
  const std::string text = DataError("file", name, "\n", name).what();
  CHECK(text.size() < 5000);
  CHECK(text.find("x...\nxx") != std::string::npos);
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdefg", 6) == "abcdef.");
  CHECK(printable("abcdefghijk\nabcdef", 6) == "abcdef...\nabcdef");
}

}  // namespace quantrain
