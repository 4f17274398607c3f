#include "framework/autograd/integer_buffer.hpp"

#include <array>

#include "framework/autograd/named_state.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::values;

TEST_CASE("an integer buffer holds only values in its range", "[autograd][state]") {
  IntegerBuffer buffer({2}, {.value = 3, .least = 1, .most = 4});
  CHECK(buffer.shape() == Shape{2});
  const IntegerBuffer other = buffer;
  buffer.set(std::array<int64_t, 2>{4, 1});
  CHECK(other.same_as(buffer));
  CHECK(other.values()[0] == 4);
  QUANTRAIN_CHECK_ERROR(buffer.set(std::array<int64_t, 2>{2, 5}),
                        DataError,
                        "[integers] the buffer holds 5 at 1, expected 1 to 4");
  QUANTRAIN_CHECK_ERROR(buffer.fill(0), DataError, "holds 0 at 0, expected 1 to 4");
  QUANTRAIN_CHECK_ERROR(
      buffer.set(std::array<int64_t, 1>{2}), ShapeError, "1 values do not fill shape [2]");
  QUANTRAIN_CHECK_ERROR(buffer.item(), ShapeError, "item() needs a single value, got shape [2]");
  CHECK(buffer.values()[0] == 4);
  CHECK(buffer.values()[1] == 1);
  CHECK_THROWS_AS(IntegerBuffer({1}, {.least = 1}), DataError);
  QUANTRAIN_CHECK_ERROR(IntegerBuffer().item(), GraphError, "[integers] the buffer is undefined");
}

TEST_CASE("the values of a state are copied between entries of one type and shape",
          "[autograd][state]") {
  NamedState floats("w", Tensor::full({2}, 1.5f));
  NamedState integers("n", IntegerBuffer({2}, {.value = 1, .least = 0, .most = 9}));
  NamedState copy = integers.copy();
  CHECK_FALSE(copy.same_as(integers));
  copy.integers.fill(100);
  QUANTRAIN_CHECK_ERROR(
      integers.copy_values(copy), DataError, "[state] n holds 100 at 0, expected 0 to 9");
  copy.integers.fill(7);
  integers.copy_values(copy);
  CHECK(values(integers) == std::vector<float>{7, 7});
  CHECK(values(floats.copy()) == std::vector<float>{1.5f, 1.5f});
  QUANTRAIN_CHECK_ERROR(floats.copy_values(integers),
                        ShapeError,
                        "[state] \"w\" has integers [2], the target floats [2]");
  QUANTRAIN_CHECK_ERROR(integers.copy_values({"n", IntegerBuffer({1})}),
                        ShapeError,
                        "\"n\" has integers [1], the target integers [2]");
}

}  // namespace quantrain
