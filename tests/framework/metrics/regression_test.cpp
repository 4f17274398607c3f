#include "framework/metrics/regression.hpp"

#include <cmath>
#include <limits>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

Tensor one_column(const std::vector<float>& values) {
  return Tensor::from({static_cast<int64_t>(values.size()), 1}, values);
}

}  // namespace

// The examples are from scikit-learn's reference pages of mean_absolute_error and r2_score.
TEST_CASE("errors of a regression equal the published examples", "[training][metrics]") {
  const Tensor target = one_column({3.0f, -0.5f, 2.0f, 7.0f});
  const Tensor predicted = one_column({2.5f, 0.0f, 2.0f, 8.0f});
  CHECK(mean_absolute_error(predicted, target) == 0.5);
  CHECK(r2_score(predicted, target) == test::Approx(0.948608).epsilon(1e-6));

  const Tensor two_targets =
      Tensor::from({3, 2}, std::vector{0.5f, 1.0f, -1.0f, 1.0f, 7.0f, -6.0f});
  const Tensor two_outputs =
      Tensor::from({3, 2}, std::vector{0.0f, 2.0f, -1.0f, 2.0f, 8.0f, -5.0f});
  RegressionErrors errors;
  errors.add(two_outputs, two_targets);
  CHECK(errors.outputs() == 2);
  CHECK(errors.count() == 3);
  CHECK(errors.mae(0) == 0.5);
  CHECK(errors.mae(1) == 1.0);
  CHECK(errors.mse(0) == test::Approx(1.25 / 3.0));
  CHECK(errors.rmse(1) == 1.0);
  CHECK(errors.r2(0) == test::Approx(0.965438).epsilon(1e-6));
  CHECK(errors.r2(1) == test::Approx(0.908163).epsilon(1e-6));
  CHECK(mean_absolute_error(two_outputs, two_targets) == 0.75);
  CHECK(r2_score(two_outputs, two_targets) ==
        test::Approx((0.965438 + 0.908163) / 2.0).epsilon(1e-6));

  const Tensor rising = one_column({1.0f, 2.0f, 3.0f});
  CHECK(r2_score(rising, rising) == 1.0);
  CHECK(r2_score(one_column({2.0f, 2.0f, 2.0f}), rising) == 0.0);
  CHECK(r2_score(one_column({3.0f, 2.0f, 1.0f}), rising) == -3.0);
  const Tensor constant = one_column({5.0f, 5.0f});
  CHECK(r2_score(constant, constant) == 1.0);
  CHECK(r2_score(one_column({5.0f, 6.0f}), constant) == 0.0);
}

TEST_CASE("errors of a regression do not depend on the batches", "[training][metrics]") {
  RegressionErrors whole, parts;
  const std::vector<float> t{1000.0f, 0.5f, 1001.0f, 0.25f, 1003.0f, 0.75f};
  const std::vector<float> y{1000.5f, 0.5f, 1001.5f, 0.0f, 1002.5f, 1.0f};
  whole.add(Tensor::from({3, 2}, y), Tensor::from({3, 2}, t));
  for (size_t i = 0; i < 3; ++i)
    parts.add(Tensor::from({1, 2}, std::span(y).subspan(2 * i, 2)),
              Tensor::from({1, 2}, std::span(t).subspan(2 * i, 2)));
  for (int64_t k = 0; k < 2; ++k) {
    CHECK(parts.mae(k) == whole.mae(k));
    CHECK(parts.r2(k) == whole.r2(k));
  }
  // Far from 0: the mean of 1000, 1001 and 1003 is 1001.333, their squared distances sum to 14/3.
  CHECK(whole.r2(0) == test::Approx(1.0 - 0.75 / (14.0 / 3.0)));

  // [N] has one output.
  RegressionErrors flat;
  flat.add(Tensor::from({2}, std::vector{1.0f, 2.0f}), Tensor::from({2}, std::vector{1.0f, 4.0f}));
  CHECK(flat.outputs() == 1);
  CHECK(flat.mae(0) == 1.0);
}

TEST_CASE("errors of a regression refuse values that they cannot compare", "[training][metrics]") {
  RegressionErrors errors;
  CHECK_THROWS_AS(errors.add(Tensor::zeros({2, 1}), Tensor::zeros({2})), ShapeError);
  CHECK_THROWS_AS(errors.add(Tensor::zeros({0, 1}), Tensor::zeros({0, 1})), ShapeError);
  CHECK_THROWS_AS(errors.add(one_column({std::nanf("")}), one_column({0.0f})), DataError);
  CHECK_THROWS_AS(
      errors.add(one_column({0.0f}), one_column({std::numeric_limits<float>::infinity()})),
      DataError);
  CHECK_THROWS_AS(errors.mae(0), DataError);
  errors.add(one_column({1.0f}), one_column({3.0f}));
  CHECK_THROWS_AS(errors.add(Tensor::zeros({1, 2}), Tensor::zeros({1, 2})), ShapeError);
  CHECK_THROWS_AS(errors.r2(1), DataError);
  CHECK_THROWS_AS(errors.r2(-1), DataError);
  CHECK(errors.mae(0) == 2.0);
  CHECK(errors.count() == 1);
}

}  // namespace quantrain
