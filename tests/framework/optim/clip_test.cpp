#include "framework/optim/clip.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/framework/optim/parameters.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::kInfinity;
using test::kNan;
using test::parameter;
using test::values;

Tensor with_grad(const std::vector<float>& grad) {
  const Shape shape{static_cast<int64_t>(grad.size())};
  Tensor tensor = parameter(shape, 1);
  tensor.set_grad(Tensor::from(shape, grad));
  return tensor;
}

}  // namespace

TEST_CASE("gradients whose norm exceeds the limit are scaled down to it", "[optim][clip]") {
  const std::vector<Tensor> parameters{
      with_grad({3.0f, 0.0f}), parameter({5}, 2), with_grad({0.0f, -4.0f})};
  CHECK(clip_grad_norm(parameters, 2.5f) == 5.0f);
  CHECK(values(parameters[0].grad()) == std::vector<float>{1.5f, 0.0f});
  CHECK(values(parameters[2].grad()) == std::vector<float>{0.0f, -2.0f});
  CHECK_FALSE(parameters[1].grad().defined());
}

TEST_CASE("gradients whose norm is within the limit do not change", "[optim][clip]") {
  const std::vector<Tensor> parameters{with_grad({3.0f, -4.0f})};
  const Tensor grad = parameters[0].grad();
  CHECK(clip_grad_norm(parameters, 5.0f) == 5.0f);
  CHECK(parameters[0].grad().same_as(grad));
  CHECK(clip_grad_norm({}, 1.0f) == 0.0f);
}

TEST_CASE("clipping creates new gradients, because the old ones may share memory",
          "[optim][clip]") {
  const std::vector<Tensor> parameters{with_grad({3.0f, -4.0f})};
  const Tensor grad = parameters[0].grad();
  clip_grad_norm(parameters, 1.0f);
  CHECK(values(grad) == std::vector<float>{3.0f, -4.0f});
  const Tensor scaled = parameters[0].grad();
  clip_grad_value(parameters, 0.5f);
  CHECK(values(scaled) != values(parameters[0].grad()));
}

TEST_CASE("a norm is right even if squares overflow, and the same with any number of threads",
          "[optim][clip]") {
  CHECK(clip_grad_norm(std::vector<Tensor>{with_grad({3e30f, -4e30f})}, kInfinity) ==
        test::Approx(5e30));
  Tensor large = parameter({100001}, 1);
  large.set_grad(test::normal_tensor({100001}, 7));
  set_threads(1);
  const float one = clip_grad_norm(std::vector<Tensor>{large}, 1e9f);
  for (const int threads : test::thread_counts({3})) {
    set_threads(threads);
    CHECK(clip_grad_norm(std::vector<Tensor>{large}, 1e9f) == one);
  }
  set_threads(0);
  // The expected norm of 100,001 standard normal values. The norm's standard deviation is 0.2 % of
  // it.
  CHECK(one == test::Approx(std::sqrt(100001.0)).epsilon(0.01));
}

TEST_CASE("a norm that is not finite is an error and changes nothing", "[optim][clip]") {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const std::vector<Tensor> parameters{with_grad({3.0f}), with_grad({bad})};
    const Tensor grad = parameters[0].grad();
    QUANTRAIN_CHECK_ERROR(clip_grad_norm(parameters, 1.0f),
                          DataError,
                          ", so nothing was clipped: the learning rate may be too large");
    CHECK(parameters[0].grad().same_as(grad));
  }
  QUANTRAIN_CHECK_ERROR(clip_grad_norm({}, 0.0f), DataError, "max_norm is 0, expected more than 0");
  QUANTRAIN_CHECK_ERROR(clip_grad_norm({}, kNan), DataError, "max_norm is nan");
}

TEST_CASE("gradients are limited element by element", "[optim][clip]") {
  const std::vector<Tensor> parameters{with_grad({3.0f, -0.25f, -kInfinity}), parameter({5}, 2)};
  clip_grad_value(parameters, 0.5f);
  CHECK(values(parameters[0].grad()) == std::vector<float>{0.5f, -0.25f, -0.5f});
  CHECK_FALSE(parameters[1].grad().defined());
  const std::vector<Tensor> bad{with_grad({3.0f}), with_grad({1.0f, kNan})};
  QUANTRAIN_CHECK_ERROR(
      clip_grad_value(bad, 0.5f), DataError, "the gradient of parameter 1 is NaN at 1");
  CHECK(values(bad[0].grad()) == std::vector<float>{3.0f});
  QUANTRAIN_CHECK_ERROR(clip_grad_value(bad, -1.0f), DataError, "limit is -1");
}

}  // namespace quantrain
