#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/rmsprop.hpp"
#include "framework/optim/sgd.hpp"
#include "tests/floats.hpp"
#include "tests/framework/optim/parameters.hpp"

namespace quantrain {
namespace {

using test::kInfinity;
using test::kNan;
using test::parameter;
using test::values;

// Number of elements. It exceeds one block of the kernel that finds NaN and infinity, and it is no
// multiple of a vector length.
constexpr int64_t kLong = 100003;

// Two parameters with gradients of 1, except for one element of the second.
std::vector<Tensor> with_gradient(float bad, int64_t position) {
  std::vector<Tensor> w{parameter({2}, 1, "0.bias"), parameter({kLong}, 2, "4.weight")};
  w[0].set_grad(Tensor::full({2}, 1.0f));
  Tensor grad = Tensor::full({kLong}, 1.0f);
  grad.mutable_data()[position] = bad;
  w[1].set_grad(grad);
  return w;
}

std::vector<std::vector<float>> all(const std::vector<NamedState>& state) {
  std::vector<std::vector<float>> result;
  for (const NamedState& entry : state) result.push_back(values(entry));
  return result;
}

template <class Optimizer, class Options>
void check_refuses(Options options) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const int64_t position : {int64_t{0}, int64_t{40001}, kLong - 1}) {
      const std::vector<Tensor> w = with_gradient(bad, position);
      const std::vector<float> bias = values(w[0]);
      const std::vector<float> weight = values(w[1]);
      Optimizer optimizer(w, options);
      const auto state = all(optimizer.state());
      const std::string place = " at " + std::to_string(position) + ", so no parameter was";
      QUANTRAIN_CHECK_ERROR(
          optimizer.step(), DataError, "the gradient of parameter 1 \"4.weight\" [100003] is ");
      QUANTRAIN_CHECK_ERROR(optimizer.step(), DataError, place);
      CHECK(values(w[0]) == bias);
      CHECK(values(w[1]) == weight);
      CHECK(all(optimizer.state()) == state);
    }
  }
}

}  // namespace

TEST_CASE("a first step without any gradient is refused", "[optim]") {
  std::vector<Tensor> w{parameter({2}, 1, "0.bias"), parameter({3}, 2, "4.weight")};
  Sgd optimizer(w, {.learning_rate = 1.0f});
  QUANTRAIN_CHECK_ERROR(
      optimizer.step(), DataError, "no parameter has a gradient: call backward()");
  w[0].set_grad(Tensor::full({2}, 1.0f));
  const std::vector<float> bias = values(w[0]);
  const std::vector<float> weight = values(w[1]);
  optimizer.step();
  CHECK(values(w[0]) != bias);
  CHECK(values(w[1]) == weight);
  // Later, the losses of some steps may use other parameters.
  optimizer.zero_grad();
  const std::vector<float> stepped = values(w[0]);
  optimizer.step();
  CHECK(values(w[0]) == stepped);
}

TEST_CASE("a gradient that is not finite is an error and changes nothing", "[optim]") {
  check_refuses<Sgd>(SgdOptions{.momentum = 0.9f});
  check_refuses<Adam>(AdamOptions{});
  check_refuses<AdamW>(AdamWOptions{});
  check_refuses<RmsProp>(RmsPropOptions{.momentum = 0.9f});
}

TEST_CASE("gradients that are not finite can be allowed", "[optim]") {
  const auto first = [](auto&& optimizer) {
    optimizer.step();
    return optimizer.parameters()[1].data()[0];
  };
  const std::vector<Tensor> w = with_gradient(kNan, 0);
  CHECK(std::isnan(first(Sgd(w, {.allow_nonfinite = true}))));
  CHECK(std::isnan(first(Adam(with_gradient(kNan, 0), {.allow_nonfinite = true}))));
  CHECK(std::isnan(first(AdamW(with_gradient(kNan, 0), {.allow_nonfinite = true}))));
}

TEST_CASE("an optimizer accepts the largest gradient that leaves its state finite", "[optim]") {
  const auto accepts = [](float gradient, auto make) {
    const std::vector<Tensor> w = with_gradient(gradient, 7);
    auto optimizer = make(w);
    optimizer->step();
    CHECK(std::isfinite(w[1].data()[8]));
    for (const std::vector<float>& state : all(optimizer->state()))
      CHECK(std::all_of(state.begin(), state.end(), [](float v) { return std::isfinite(v); }));
  };
  const auto sgd = [](const auto& w) { return std::make_unique<Sgd>(w, SgdOptions{}); };
  const auto adam = [](const auto& w) { return std::make_unique<Adam>(w, AdamOptions{}); };
  const auto rms = [](const auto& w) { return std::make_unique<RmsProp>(w, RmsPropOptions{}); };
  const float largest = std::sqrt(std::numeric_limits<float>::max());
  accepts(std::numeric_limits<float>::max(), sgd);
  accepts(-largest, adam);
  accepts(largest, rms);
  const float more = std::nextafter(largest, kInfinity);
  for (const float gradient : {more, -more}) {
    QUANTRAIN_CHECK_ERROR(accepts(gradient, adam),
                          DataError,
                          "at 7, and its square is infinite, so no parameter was updated");
    QUANTRAIN_CHECK_ERROR(accepts(gradient, rms), DataError, "at 7, and its square is infinite");
  }
}

}  // namespace quantrain
