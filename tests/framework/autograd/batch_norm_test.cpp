#include "framework/autograd/ops/batch_norm.hpp"

#include <cmath>
#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/add.hpp"
#include "framework/autograd/ops/div.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/autograd/ops/sum.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::make_leaf;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

// Bounds the rounding error of a sum of a few dozen float32 values near 1, divided by a standard
// deviation near 1.
constexpr double kBatchNormMargin = 1e-5;

struct Layer {
  explicit Layer(int64_t channels)
      : gamma(random_leaf({channels}, 11, 0.5f, 1.5f)),
        beta(random_leaf({channels}, 12)),
        mean(random_tensor({channels}, 13)),
        variance(random_tensor({channels}, 14, 0.5f, 2.0f)) {}
  Tensor operator()(const Tensor& x, const BatchNormOptions& options = {}) const {
    return batch_norm(x, gamma, beta, mean, variance, options);
  }
  Tensor gamma, beta, mean, variance;
};

struct Moments {
  double mean = 0.0;
  double variance = 0.0;  // of the population
};

Moments moments(const Tensor& x, int64_t channel) {
  const int64_t c = x.dim(3);
  const auto n = static_cast<double>(x.elements() / c);
  Moments m;
  for (int64_t i = channel; i < x.elements(); i += c) m.mean += double{x.data()[i]} / n;
  for (int64_t i = channel; i < x.elements(); i += c)
    m.variance += std::pow(double{x.data()[i]} - m.mean, 2) / n;
  return m;
}

}  // namespace

TEST_CASE("batch_norm normalises with the batch and updates the running statistics",
          "[autograd][batch_norm]") {
  for (const int64_t channels : {1, 3, 8, 15, 16, 17, 33}) {
    const Tensor x = random_tensor({2, 3, 5, channels}, 5, -1.0f, 3.0f);
    const Layer layer(channels);
    const std::vector<float> mean_before = values(layer.mean);
    const std::vector<float> variance_before = values(layer.variance);
    const Tensor y = layer(x, {.momentum = 0.25f, .epsilon = 1e-3f});
    CAPTURE(channels);
    for (int64_t c = 0; c < channels; ++c) {
      const auto i = static_cast<size_t>(c);
      const Moments m = moments(x, c);
      const double scale = double{layer.gamma.data()[c]} / std::sqrt(m.variance + 1e-3);
      for (int64_t k = c; k < x.elements(); k += channels) {
        const double expected =
            (double{x.data()[k]} - m.mean) * scale + double{layer.beta.data()[c]};
        CHECK(y.data()[k] == test::Approx(expected).margin(kBatchNormMargin));
      }
      CHECK(layer.mean.data()[c] ==
            test::Approx(0.75 * double{mean_before[i]} + 0.25 * m.mean).margin(kBatchNormMargin));
      CHECK(layer.variance.data()[c] ==
            test::Approx(0.75 * double{variance_before[i]} + 0.25 * m.variance * 30.0 / 29.0)
                .margin(kBatchNormMargin));
    }
  }
}

TEST_CASE("batch_norm in evaluation uses the running statistics and does not change them",
          "[autograd][batch_norm]") {
  const Tensor x = make_tensor({1, 1, 1, 2}, {3, -1});
  Tensor mean = make_tensor({2}, {1, 1});
  Tensor variance = make_tensor({2}, {4, 0.25f});
  const Tensor y = batch_norm(x,
                              make_tensor({2}, {2, 1}),
                              make_tensor({2}, {10, 0}),
                              mean,
                              variance,
                              {.epsilon = 1e-12f, .training = false});
  CHECK(values(y) == std::vector<float>{12, -4});
  CHECK(values(mean) == std::vector<float>{1, 1});
  CHECK(values(variance) == std::vector<float>{4, 0.25f});
  CHECK(Layer(3)(Tensor::zeros({0, 2, 2, 3}), {.training = false}).shape() == Shape{0, 2, 2, 3});
}

TEST_CASE("batch_norm gradients match finite differences in training and evaluation",
          "[autograd][batch_norm]") {
  for (const bool training : {true, false}) {
    for (const int64_t channels : {1, 5}) {
      const Tensor x = random_leaf({2, 3, 2, channels}, 5, -2.0f, 2.0f);
      const Layer layer(channels);
      CAPTURE(training, channels);
      check_gradient([&] { return layer(x, {.training = training}); },
                     {x, layer.gamma, layer.beta});
      const Tensor constant = x.detach();
      check_gradient([&] { return layer(constant, {.training = training}); },
                     {layer.gamma, layer.beta});
    }
  }
}

TEST_CASE("rescaled_batch_norm is batch_norm of x / factor + shift, gradients included",
          "[autograd][batch_norm]") {
  // With a small epsilon, the gradient of the factor would be too small to check.
  const BatchNormOptions options{.momentum = 0.25f, .epsilon = 0.5f};
  for (const int64_t channels : {1, 5, 17}) {
    const Tensor x = random_leaf({2, 3, 2, channels}, 5, -2.0f, 2.0f);
    Tensor factor = random_leaf({channels}, 6, 0.5f, 2.0f);
    factor.mutable_data()[0] = -0.75f;
    const Tensor shift = random_leaf({channels}, 7);
    const Layer fused(channels);
    const Layer apart(channels);
    const auto run = [&](const Layer& l, bool with_shift) {
      return rescaled_batch_norm(
          x, factor, with_shift ? shift : Tensor(), l.gamma, l.beta, l.mean, l.variance, options);
    };
    const Tensor y = run(fused, true);
    const Tensor expected = apart(add(div(x, factor), shift), options);
    for (int64_t i = 0; i < y.elements(); ++i)
      CHECK(y.data()[i] == test::Approx(double{expected.data()[i]}).margin(kBatchNormMargin));
    for (int64_t c = 0; c < channels; ++c) {
      CHECK(fused.mean.data()[c] ==
            test::Approx(double{apart.mean.data()[c]}).margin(kBatchNormMargin));
      CHECK(fused.variance.data()[c] ==
            test::Approx(double{apart.variance.data()[c]}).margin(kBatchNormMargin));
    }
    // For a weighted sum of the results, the gradients equal those of the separate operations.
    const Tensor weights = random_tensor(x.shape(), 8);
    const std::vector<Tensor> shared{x, factor};
    sum(mul(y, weights)).backward();
    std::vector<std::vector<float>> of_fused;
    for (Tensor leaf : shared) {
      of_fused.push_back(values(leaf.grad()));
      leaf.zero_grad();
    }
    sum(mul(expected, weights)).backward();
    for (size_t k = 0; k < shared.size(); ++k) {
      const std::vector<float> of_apart = values(shared[k].grad());
      for (size_t i = 0; i < of_apart.size(); ++i)
        CHECK(of_fused[k][i] == test::Approx(double{of_apart[i]}).margin(10 * kBatchNormMargin));
    }
    for (const bool with_shift : {false, true}) {
      std::vector<Tensor> leaves{x, factor, fused.gamma, fused.beta};
      if (with_shift) leaves.push_back(shift);
      check_gradient([&] { return run(fused, with_shift); }, leaves);
    }
    QUANTRAIN_CHECK_ERROR(rescaled_batch_norm(x,
                                              factor,
                                              Tensor::zeros({channels + 1}),
                                              fused.gamma,
                                              fused.beta,
                                              fused.mean,
                                              fused.variance),
                          ShapeError,
                          "shift has shape");
    QUANTRAIN_CHECK_ERROR(rescaled_batch_norm(x,
                                              factor,
                                              Tensor(),
                                              fused.gamma,
                                              fused.beta,
                                              fused.mean,
                                              fused.variance,
                                              {.training = false}),
                          GraphError,
                          "only batch statistics cancel the factor");
  }
}

TEST_CASE("rescaled_batch_norm notices that its input was written", "[autograd][batch_norm]") {
  Tensor x = random_leaf({2, 3, 2, 4}, 5);
  const Layer layer(4);
  const Tensor y = sum(rescaled_batch_norm(
      x, Tensor::full({4}, 2.0f), Tensor(), layer.gamma, layer.beta, layer.mean, layer.variance));
  x.mutable_data()[0] = 1.0f;
  Tensor loss = y;
  QUANTRAIN_CHECK_ERROR(loss.backward(), GraphError, "input 0 was written after it was used");
}

TEST_CASE("batch_norm of rows equals batch_norm of one-pixel images", "[autograd][batch_norm]") {
  for (const bool training : {true, false}) {
    const Layer of_rows(5);
    const Layer of_images(5);
    const Tensor rows = random_leaf({7, 5}, 5, -2.0f, 2.0f);
    const Tensor images = make_leaf({7, 1, 1, 5}, values(rows));
    const Tensor y = of_rows(rows, {.training = training});
    const Tensor z = of_images(images, {.training = training});
    CHECK(y.shape() == Shape{7, 5});
    CHECK(values(y) == values(z));
    sum(mul(y, y)).backward();
    sum(mul(z, z)).backward();
    CHECK(values(rows.grad()) == values(images.grad()));
    CHECK(values(of_rows.gamma.grad()) == values(of_images.gamma.grad()));
    CHECK(values(of_rows.variance) == values(of_images.variance));
    const Tensor x = random_leaf({3, 5}, 6);
    check_gradient([&] { return of_rows(x, {.training = training}); },
                   {x, of_rows.gamma, of_rows.beta});
  }
}

TEST_CASE("in training, batch_norm can run twice before backward", "[autograd][batch_norm]") {
  const Layer layer(2);
  const Tensor x = random_leaf({1, 2, 2, 2});
  const Tensor first = layer(x);
  const Tensor second = layer(first);
  CHECK_NOTHROW(second.node()->backward(second));
  CHECK(first.node()->inputs().size() == 3);
  CHECK(layer(x, {.training = false}).node()->inputs().size() == 5);
}

TEST_CASE("batch_norm refuses shapes, statistics and options that make no sense",
          "[autograd][batch_norm]") {
  const Tensor two = Tensor::zeros({2});
  const Tensor x = Tensor::zeros({2, 1, 1, 2});
  const auto run = [&](const Tensor& input,
                       const Tensor& gamma,
                       const Tensor& mean,
                       const BatchNormOptions& options = {}) {
    return batch_norm(input, gamma, two, mean, two, options);
  };
  QUANTRAIN_CHECK_ERROR(
      run(Tensor::zeros({2}), two, two), ShapeError, "x must be [N, ..., C], got [2]");
  QUANTRAIN_CHECK_ERROR(
      run(x, Tensor::zeros({3}), two), ShapeError, "gamma has shape [3], x [2, 1, 1, 2]");
  QUANTRAIN_CHECK_ERROR(
      run(x, two, Tensor::zeros({2, 1})), ShapeError, "running mean has shape [2, 1]");
  QUANTRAIN_CHECK_ERROR(run(Tensor::zeros({1, 1, 1, 2}), two, two),
                        ShapeError,
                        "more than one value per channel, got shape [1, 1, 1, 2]");
  QUANTRAIN_CHECK_ERROR(
      run(Tensor::zeros({0, 1, 1, 2}), two, two), ShapeError, "more than one value per channel");
  QUANTRAIN_CHECK_ERROR(run(x, two, Tensor::zeros({2}).set_requires_grad(true)),
                        GraphError,
                        "running mean and variance get no gradient: call set_requires_grad(false)");
  QUANTRAIN_CHECK_ERROR(run(x, two, two, {.epsilon = 0.0f}), DataError, "epsilon must be positive");
  QUANTRAIN_CHECK_ERROR(
      run(x, two, two, {.momentum = 1.5f}), DataError, "momentum must lie in [0, 1], got 1.5");
}

TEST_CASE("a batch with NaN or infinity leaves the running statistics as they were",
          "[autograd][batch_norm]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity, 3e38f}) {
    const Tensor mean = Tensor::zeros({2});
    const Tensor variance = Tensor::full({2}, 1.0f);
    const Tensor x = Tensor::from({3, 2}, std::vector<float>{1.0f, 2.0f, 3.0f, bad, 5.0f, -bad});
    const Scope scope("block.norm");
    QUANTRAIN_CHECK_ERROR(
        batch_norm(x, Tensor::full({2}, 1.0f), Tensor::zeros({2}), mean, variance),
        DataError,
        "[block.norm] the batch's ");
    CHECK(values(mean) == std::vector<float>{0.0f, 0.0f});
    CHECK(values(variance) == std::vector<float>{1.0f, 1.0f});
  }
}

}  // namespace quantrain
