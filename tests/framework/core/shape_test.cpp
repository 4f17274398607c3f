#include "framework/core/shape.hpp"

#include <sstream>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("a shape counts its elements and prints its extents", "[core][shape]") {
  std::ostringstream text;
  text << Shape{2, 3, 4};
  CHECK(text.str() == "[2, 3, 4]");
  CHECK(Shape{2, 3, 4}.elements() == 24);
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{5, 0}.elements() == 0);
  CHECK(Shape{2, 3, 4}[-1] == 4);
}

TEST_CASE("a shape rejects extents and axes that make no sense", "[core][shape]") {
  QUANTRAIN_CHECK_ERROR((Shape{2, -1}), ShapeError, "negative extent");
  QUANTRAIN_CHECK_ERROR((Shape{2, 3}[2]), ShapeError, "no axis 2 in [2, 3]");
  QUANTRAIN_CHECK_ERROR(
      (Shape{int64_t{1} << 40, int64_t{1} << 40}), ShapeError, "too many elements");
  // Strides are products of extents. So the product of all extents but zeros must fit in int64_t.
  for (const Shape& huge :
       {Shape{0, int64_t{1} << 62}, Shape{int64_t{1} << 31, 0, int64_t{1} << 31}})
    CHECK(huge.elements() == 0);
  const int64_t b = int64_t{1} << 40;
  QUANTRAIN_CHECK_ERROR((Shape{b, b, 0}), ShapeError, "too many elements in [1099511627776, ");
  QUANTRAIN_CHECK_ERROR((Shape{0, b, b}), ShapeError, "too many elements in [0, 1099511627776, ");
  QUANTRAIN_CHECK_ERROR((Shape{b, 0, b}), ShapeError, "too many elements");
  QUANTRAIN_CHECK_ERROR((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError, "rank 9 exceeds 8");
}

}  // namespace quantrain
