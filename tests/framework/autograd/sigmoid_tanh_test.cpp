#include <cmath>

#include "framework/autograd/ops/functions.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::kAwkwardSizes;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

// Our exp is off by a few units in the last place of float32.
constexpr double kExpMargin = 1e-6;

}  // namespace

TEST_CASE("sigmoid and tanh agree with the standard library at every size",
          "[autograd][sigmoid][tanh]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({n}, 3, -8.0f, 8.0f);
    const std::vector<float> v = values(x);
    const std::vector<float> s = values(sigmoid(x));
    const std::vector<float> t = values(tanh(x));
    CAPTURE(n);
    for (size_t i = 0; i < v.size(); ++i) {
      CHECK(s[i] == test::Approx(1.0 / (1.0 + std::exp(-double{v[i]}))).margin(kExpMargin));
      CHECK(t[i] == test::Approx(std::tanh(double{v[i]})).margin(kExpMargin));
    }
  }
}

TEST_CASE("sigmoid and tanh saturate without overflow", "[autograd][sigmoid][tanh]") {
  const Tensor x = make_tensor({4}, {-1e4f, -200.0f, 200.0f, 1e4f});
  CHECK(values(sigmoid(x)) == std::vector<float>{0, 0, 1, 1});
  CHECK(values(tanh(x)) == std::vector<float>{-1, -1, 1, 1});
}

TEST_CASE("sigmoid and tanh gradients match finite differences", "[autograd][sigmoid][tanh]") {
  const Tensor x = random_leaf({3, 17}, 2, -3.0f, 3.0f);
  check_gradient([&] { return sigmoid(x); }, {x});
  check_gradient([&] { return tanh(x); }, {x});
}

}  // namespace quantrain
