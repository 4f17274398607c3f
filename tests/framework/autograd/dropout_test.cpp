#include "framework/autograd/ops/dropout.hpp"

#include <algorithm>
#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::values;

}  // namespace

TEST_CASE("dropout zeroes about p of the elements and scales the rest", "[autograd][dropout]") {
  const int64_t n = 20000;
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    const std::vector<float> y = values(dropout(Tensor::full({n}, 2.0f), {.p = p, .seed = 3}));
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0f));
    CAPTURE(p);
    // Six standard deviations of a binomial count.
    CHECK(dropped ==
          test::Approx(n * double{p}).margin(6.0 * std::sqrt(n * double{p} * (1.0 - double{p}))));
    CHECK(std::all_of(
        y.begin(), y.end(), [&](float v) { return v == 0.0f || v == 2.0f * (1.0f / (1.0f - p)); }));
  }
}

TEST_CASE("dropout depends on seed, counter and index, not on threads or size",
          "[autograd][dropout]") {
  const auto run = [](uint64_t seed, uint64_t counter, int64_t n = 10000) {
    return values(dropout(Tensor::full({n}, 1.0f), {.seed = seed, .counter = counter}));
  };
  set_threads(1);
  const std::vector<float> once = run(1, 2);
  for (const int threads : test::thread_counts({2})) {
    set_threads(threads);
    CHECK(run(1, 2) == once);
  }
  set_threads(0);
  CHECK(run(1, 3) != once);
  CHECK(run(2, 2) != once);
  for (const int64_t n : test::kAwkwardSizes) {
    CHECK(run(1, 2, n) == std::vector<float>(once.begin(), once.begin() + n));
  }
}

TEST_CASE("dropout gradient matches finite differences", "[autograd][dropout]") {
  const Tensor x = test::random_leaf({5, 7});
  test::check_gradient([&] { return dropout(x, {.p = 0.3f, .seed = 4, .counter = 9}); }, {x});
}

TEST_CASE("dropout is the identity in evaluation and for p = 0, and 0 for p = 1",
          "[autograd][dropout]") {
  const Tensor x = test::random_leaf({5});
  CHECK(dropout(x, {.training = false}).same_as(x));
  CHECK(dropout(x, {.p = 0.0f}).same_as(x));
  CHECK(values(dropout(x, {.p = 1.0f})) == std::vector<float>(5, 0.0f));
}

TEST_CASE("dropout refuses a p that is not a probability", "[autograd][dropout]") {
  const Tensor x = Tensor::zeros({2});
  QUANTRAIN_CHECK_ERROR(
      dropout(x, {.p = -0.1f}), DataError, "[dropout] p must lie in [0, 1], got -0.1");
  QUANTRAIN_CHECK_ERROR(dropout(x, {.p = 1.5f}), DataError, "p must lie in [0, 1]");
  QUANTRAIN_CHECK_ERROR(dropout(x, {.p = std::nanf("")}), DataError, "p must lie in [0, 1]");
}

}  // namespace quantrain
