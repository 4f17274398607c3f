#include "framework/core/error.hpp"

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

}  // namespace quantrain
