#include "framework/autograd/ops/mse_loss.hpp"

#include "framework/core/error.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

TEST_CASE("mse_loss is the mean squared difference at every size", "[autograd][mse_loss]") {
  for (const int64_t n : test::kAwkwardSizes) {
    if (n == 0) continue;
    const Tensor x = test::random_tensor({n}, 1);
    const Tensor target = test::random_tensor({n}, 2);
    double expected = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double difference = double{x.data()[i]} - double{target.data()[i]};
      expected += difference * difference / static_cast<double>(n);
    }
    CAPTURE(n);
    CHECK(mse_loss(x, target).item() == test::Approx(expected).epsilon(1e-5));  // float32 sums
  }
}

TEST_CASE("mse_loss gradient matches finite differences for both operands",
          "[autograd][mse_loss]") {
  const Tensor x = test::random_leaf({3, 5}, 1);
  const Tensor target = test::random_leaf({3, 5}, 2);
  test::check_gradient([&] { return mse_loss(x, target); }, {x, target});
  const Tensor constant = test::random_tensor({3, 5}, 3);
  test::check_gradient([&] { return mse_loss(x, constant); }, {x});
}

TEST_CASE("mse_loss refuses unequal shapes and empty tensors", "[autograd][mse_loss]") {
  QUANTRAIN_CHECK_ERROR(mse_loss(Tensor::zeros({2, 3}), Tensor::zeros({3, 2})),
                        ShapeError,
                        "[mse_loss] shapes differ: x [2, 3], target [3, 2]");
  QUANTRAIN_CHECK_ERROR(
      mse_loss(Tensor::zeros({0}), Tensor::zeros({0})), ShapeError, "no elements to average");
}

}  // namespace quantrain
