#include "framework/autograd/ops/operators.hpp"
#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::kAwkwardSizes;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

using BinaryOperation = Tensor (*)(const Tensor&, const Tensor&);

struct BinaryCase {
  const char* name;
  BinaryOperation run;
  float (*of)(float, float);
};
const BinaryCase kBinaryCases[] = {
    {"sub", sub, [](float a, float b) { return a - b; }},
    {"mul", mul, [](float a, float b) { return a * b; }},
    {"div", div, [](float a, float b) { return a / b; }},
};

}  // namespace

TEST_CASE("sub, mul and div compute element by element at every size",
          "[autograd][sub][mul][div]") {
  for (const BinaryCase& c : kBinaryCases) {
    for (const int64_t n : kAwkwardSizes) {
      const Tensor a = random_tensor({n}, 1);
      const Tensor b = random_tensor({n}, 2, 0.5f, 2.0f);
      const std::vector<float> x = values(a);
      const std::vector<float> z = values(b);
      std::vector<float> expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) expected[i] = c.of(x[i], z[i]);
      CAPTURE(c.name, n);
      CHECK(values(c.run(a, b)) == expected);
    }
  }
}

TEST_CASE("sub, mul and div broadcast either operand", "[autograd][sub][mul][div]") {
  const Tensor column = make_tensor({2, 1}, {1, 2});
  const Tensor row = make_tensor({2}, {4, 8});
  CHECK(values(sub(column, row)) == std::vector<float>{-3, -7, -2, -6});
  CHECK(values(mul(row, column)) == std::vector<float>{4, 8, 8, 16});
  CHECK(values(div(column, row)) == std::vector<float>{0.25f, 0.125f, 0.5f, 0.25f});
  CHECK(div(column, row).shape() == Shape{2, 2});
}

TEST_CASE("sub, mul and div gradients match finite differences, with and without broadcasting",
          "[autograd][sub][mul][div]") {
  for (const BinaryCase& c : kBinaryCases) {
    INFO(c.name);
    for (const auto& [a_shape, b_shape] :
         std::vector<std::pair<Shape, Shape>>{{{3, 5}, {3, 5}},
                                              {{2, 1, 3}, {4, 1}},
                                              {{2, 3}, {}},
                                              {{1}, {2, 2}},
                                              {{0, 3}, {3}},
                                              {{4, 3}, {4, 1}},
                                              {{3, 2, 2, 5}, {3, 1, 1, 1}}}) {
      const Tensor a = random_leaf(a_shape, 3);
      const Tensor b = random_leaf(b_shape, 4, 0.5f, 2.0f);
      check_gradient([&] { return c.run(a, b); }, {a, b});
      const Tensor constant = random_tensor(b_shape, 5, 0.5f, 2.0f);
      check_gradient([&] { return c.run(a, constant); }, {a});
      check_gradient([&] { return c.run(constant, b); }, {b});
    }
  }
}

TEST_CASE("sub, mul and div refuse shapes that do not broadcast", "[autograd][sub][mul][div]") {
  const Tensor a = Tensor::zeros({2, 3});
  const Tensor b = Tensor::zeros({2, 4});
  QUANTRAIN_CHECK_ERROR(sub(a, b), ShapeError, "[sub] shapes do not broadcast: [2, 3] and [2, 4]");
  QUANTRAIN_CHECK_ERROR(mul(a, b), ShapeError, "[mul] shapes do not broadcast: [2, 3] and [2, 4]");
  QUANTRAIN_CHECK_ERROR(div(a, b), ShapeError, "[div] shapes do not broadcast: [2, 3] and [2, 4]");
}

TEST_CASE("operators work between tensors and with numbers on either side",
          "[autograd][operators]") {
  const Tensor x = test::make_leaf({2}, {1, 4});
  CHECK(values(x + x - x * x / x) == std::vector<float>{1, 4});
  CHECK(values(2.0f * x + 1.0f) == std::vector<float>{3, 9});
  CHECK(values(x * 2.0f - 1.0f) == std::vector<float>{1, 7});
  CHECK(values(1.0f - x) == std::vector<float>{0, -3});
  CHECK(values(1.0f + x) == std::vector<float>{2, 5});
  CHECK(values(8.0f / x) == std::vector<float>{8, 2});
  CHECK(values(x / 2.0f) == std::vector<float>{0.5f, 2});
  CHECK(values(-x) == std::vector<float>{-1, -4});
  check_gradient([&] { return (1.0f - x) / (2.0f * x) + -x * x; }, {x});
}

}  // namespace quantrain
