#include "framework/autograd/ops/losses.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::kAwkwardSizes;
using test::make_leaf;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

// Relative rounding error of sums of float32 values.
constexpr double kSumEpsilon = 1e-5;

struct Loss {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> function;
  std::function<double(double, double)> element;
};

const std::vector<Loss>& every_loss() {
  static const std::vector<Loss> all{
      {"l1_loss", l1_loss, [](double x, double t) { return std::abs(x - t); }},
      {"huber_loss",
       [](const Tensor& x, const Tensor& t) { return huber_loss(x, t, 0.5f); },
       [](double x, double t) {
         const double d = std::abs(x - t);
         return d <= 0.5 ? 0.5 * d * d : 0.5 * (d - 0.25);
       }},
      {"binary_cross_entropy_with_logits",
       binary_cross_entropy_with_logits,
       [](double x, double t) {
         const double p = 1.0 / (1.0 + std::exp(-x));
         return -t * std::log(p) - (1.0 - t) * std::log(1.0 - p);
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("losses are means over elements at every size", "[autograd][losses]") {
  for (const Loss& loss : every_loss()) {
    for (const int64_t n : kAwkwardSizes) {
      if (n == 0) continue;
      const Tensor x = random_tensor({n}, 1, -3.0f, 3.0f);
      const Tensor target = random_tensor({n}, 2, 0.0f, 1.0f);
      double expected = 0.0;
      for (int64_t i = 0; i < n; ++i) {
        expected +=
            loss.element(double{x.data()[i]}, double{target.data()[i]}) / static_cast<double>(n);
      }
      CAPTURE(loss.name, n);
      CHECK(loss.function(x, target).item() == test::Approx(expected).epsilon(kSumEpsilon));
    }
  }
}

TEST_CASE("gradients of losses match finite differences", "[autograd][losses]") {
  // |x - target| is at least 0.05 away from the kink at 0 and from 0.5, where the two pieces of
  // the Huber loss meet.
  const Tensor x = make_leaf({2, 4}, {0.1f, -0.7f, 2.0f, -3.0f, 0.6f, 0.3f, -0.2f, 1.4f});
  const Tensor target = make_leaf({2, 4}, {0.3f, 0.5f, 0.9f, 0.1f, 0.4f, 0.95f, 0.15f, 0.55f});
  for (const Loss& loss : every_loss()) {
    CAPTURE(loss.name);
    check_gradient([&] { return loss.function(x, target); }, {x, target});
    check_gradient([&] { return loss.function(x, target.detach()); }, {x});
    check_gradient([&] { return mul(loss.function(x.detach(), target), Tensor::full({}, 3.0f)); },
                   {target});
  }
}

TEST_CASE("binary cross entropy does not overflow", "[autograd][losses]") {
  const Tensor x = make_leaf({4}, {-1e30f, 1e30f, -1e30f, 1e30f});
  const Tensor loss = binary_cross_entropy_with_logits(x, make_tensor({4}, {0, 1, 0, 1}));
  CHECK(loss.item() == 0.0f);
  Tensor(loss).backward();
  CHECK(values(x.grad()) == std::vector<float>(4, 0.0f));
}

TEST_CASE("losses refuse unequal shapes, empty tensors and an invalid delta",
          "[autograd][losses]") {
  for (const Loss& loss : every_loss()) {
    QUANTRAIN_CHECK_ERROR(loss.function(Tensor::zeros({2, 3}), Tensor::zeros({3, 2})),
                          ShapeError,
                          "shapes differ: x [2, 3], target [3, 2]");
    QUANTRAIN_CHECK_ERROR(loss.function(Tensor::zeros({0}), Tensor::zeros({0})),
                          ShapeError,
                          std::string("[") + loss.name + "] no elements to average");
  }
  const Tensor x = Tensor::zeros({2});
  for (const float delta : {0.0f, -1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    QUANTRAIN_CHECK_ERROR(huber_loss(x, x, delta), DataError, "[huber_loss] delta is ");
  }
}

TEST_CASE("losses have the same bits with any number of threads", "[autograd][losses]") {
  const Tensor x = random_leaf({30000, 3}, 1, -3.0f, 3.0f);
  const Tensor target = random_tensor({30000, 3}, 2, 0.0f, 1.0f);
  std::vector<int32_t> labels;
  for (int i = 0; i < 30000; ++i) labels.push_back(i % 3);
  std::vector<std::vector<float>> expected;
  for (const int threads : test::thread_counts({1, 2, 4})) {
    set_threads(threads);
    std::vector<std::vector<float>> results;
    const auto add = [&](Tensor loss) {
      x.grad();
      Tensor leaf = x;
      leaf.zero_grad();
      loss.backward();
      results.push_back(values(loss));
      results.push_back(values(leaf.grad()));
    };
    for (const Loss& loss : every_loss()) add(loss.function(x, target));
    add(cross_entropy(x, labels, {.label_smoothing = 0.1f, .class_weights = {1.0f, 2.0f, 0.5f}}));
    if (expected.empty()) expected = results;
    CHECK(results == expected);
  }
  set_threads(0);
}

TEST_CASE("cross entropy supports label smoothing and class weights", "[autograd][losses]") {
  const std::vector<int32_t> labels{2, 0, 1};
  const Tensor logits = random_leaf({3, 4}, 1, -2.0f, 2.0f);
  for (const CrossEntropyOptions& options :
       {CrossEntropyOptions{.label_smoothing = 0.2f},
        CrossEntropyOptions{.class_weights = {0.5f, 2.0f, 1.0f, 3.0f}},
        CrossEntropyOptions{.label_smoothing = 1.0f, .class_weights = {0.0f, 2.0f, 1.0f, 3.0f}}}) {
    check_gradient([&] { return cross_entropy(logits, labels, options); }, {logits});
  }
  // Empty options and equal class weights give the plain loss.
  const float plain = cross_entropy(logits, labels).item();
  CHECK(cross_entropy(logits, labels, {}).item() == plain);
  CHECK(cross_entropy(logits, labels, {.class_weights = std::vector<float>(4, 5.0f)}).item() ==
        test::Approx(plain).epsilon(kSumEpsilon));
  CHECK(cross_entropy(logits, labels, {.label_smoothing = 0.125f}).node()->attributes() ==
        Attributes{{"label_smoothing", 0.125}});
  // With one class, every prediction is right.
  CHECK(cross_entropy(Tensor::zeros({1, 1}), std::vector<int32_t>{0}, {.label_smoothing = 0.5f})
            .item() == 0.0f);
}

TEST_CASE("cross entropy refuses options that make no sense", "[autograd][losses]") {
  const Tensor logits = Tensor::zeros({2, 3});
  const std::vector<int32_t> labels{0, 1};
  const auto run = [&](const CrossEntropyOptions& options) {
    cross_entropy(logits, labels, options);
  };
  QUANTRAIN_CHECK_ERROR(run({.label_smoothing = 1.5f}),
                        DataError,
                        "[cross_entropy] label_smoothing must lie in [0, 1], got 1.5");
  QUANTRAIN_CHECK_ERROR(run({.label_smoothing = std::nanf("")}), DataError, "got nan");
  QUANTRAIN_CHECK_ERROR(
      run({.class_weights = {1.0f, 1.0f}}), ShapeError, "2 class weights for 3 classes");
  QUANTRAIN_CHECK_ERROR(run({.class_weights = {1.0f, -1.0f, 1.0f}}),
                        DataError,
                        "the weight of class 1 is -1, expected a finite value >= 0");
  QUANTRAIN_CHECK_ERROR(run({.class_weights = {0.0f, 0.0f, 1.0f}}),
                        DataError,
                        "the class weights of all labels are 0");
  QUANTRAIN_CHECK_ERROR(
      cross_entropy(logits, std::vector<int32_t>{0, 3}, {.label_smoothing = 0.1f}),
      DataError,
      "label 3 of sample 1 is outside [0, 3)");
}

TEST_CASE("cross entropy takes probabilities as targets", "[autograd][losses]") {
  const Tensor logits = random_leaf({3, 4}, 1, -2.0f, 2.0f);
  const Tensor mixed = Tensor::from(
      {3, 4},
      std::vector<float>{
          0.25f, 0.0f, 0.75f, 0.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.5f, 0.25f, 0.125f, 0.0f});
  check_gradient([&] { return cross_entropy(logits, mixed); }, {logits});
  // One-hot targets give the loss of labels. Smoothed targets give the loss of smoothed labels.
  const std::vector<int32_t> labels{2, 0, 1};
  const auto targets = [&](float smoothing) {
    std::vector<float> all(12, smoothing / 4.0f);
    for (size_t row = 0; row < 3; ++row)
      all[row * 4 + static_cast<size_t>(labels[row])] += 1.0f - smoothing;
    return Tensor::from({3, 4}, all);
  };
  CHECK(cross_entropy(logits, targets(0.0f)).item() ==
        test::Approx(cross_entropy(logits, labels).item()).epsilon(kSumEpsilon));
  CHECK(cross_entropy(logits, targets(0.5f)).item() ==
        test::Approx(cross_entropy(logits, labels, {.label_smoothing = 0.5f}).item())
            .epsilon(kSumEpsilon));

  QUANTRAIN_CHECK_ERROR(cross_entropy(logits, Tensor::zeros({3, 5})),
                        ShapeError,
                        "targets must be like logits, for probabilities, or lack the last axis");
  for (const Shape& none : {Shape{0, 4}, Shape{2, 0}}) {
    QUANTRAIN_CHECK_ERROR(cross_entropy(Tensor::zeros(none), Tensor::zeros(none)),
                          ShapeError,
                          "there is nothing to compare: logits [");
  }
  QUANTRAIN_CHECK_ERROR(cross_entropy(logits, Tensor::full({3, 4}, -0.5f)),
                        DataError,
                        "target 0 is -0.5, expected a finite value >= 0");
  QUANTRAIN_CHECK_ERROR(
      cross_entropy(logits, Tensor::full({3, 4}, std::nanf(""))), DataError, "target 0 is nan");
}

}  // namespace quantrain
