#include <cmath>

#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/autograd/ops/log_softmax.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/autograd/ops/relu.hpp"
#include "framework/autograd/ops/softmax.hpp"
#include "framework/core/error.hpp"
#include "framework/integer/quantized_softmax.hpp"
#include "tests/framework/autograd/codes.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::check_gradient;
using test::kAwkwardSizes;
using test::make_tensor;
using test::random_leaf;
using test::random_tensor;
using test::values;

// Our exp and log are off by a few units in the last place, on values up to about 10.
constexpr double kSoftmaxMargin = 4e-6;

double log_sum_exp(const std::vector<float>& x) {
  double sum = 0.0;
  for (const float value : x) sum += std::exp(double{value});
  return std::log(sum);
}

}  // namespace

TEST_CASE("softmax and log_softmax agree with their definition at every size",
          "[autograd][softmax][log_softmax]") {
  for (const int64_t n : kAwkwardSizes) {
    const Tensor x = random_tensor({1, n}, 5, -3.0f, 3.0f);
    const std::vector<float> v = values(x);
    const std::vector<float> y = values(softmax(x));
    const std::vector<float> log_y = values(log_softmax(x));
    CAPTURE(n);
    for (size_t i = 0; i < v.size(); ++i) {
      const double expected = double{v[i]} - log_sum_exp(v);
      CHECK(log_y[i] == test::Approx(expected).margin(kSoftmaxMargin));
      CHECK(y[i] == test::Approx(std::exp(expected)).margin(kSoftmaxMargin));
    }
  }
}

TEST_CASE("softmax and log_softmax do not overflow", "[autograd][softmax][log_softmax]") {
  const Tensor x = make_tensor({2, 2}, {1e4f, 0.0f, -1e4f, -1e4f});
  CHECK(values(softmax(x)) == std::vector<float>{1, 0, 0.5f, 0.5f});
  CHECK(values(log_softmax(x))[1] == -1e4f);
}

TEST_CASE("softmax and log_softmax gradients match finite differences",
          "[autograd][softmax][log_softmax]") {
  for (const int64_t n : {1, 2, 17}) {
    const Tensor x = random_leaf({3, n}, 2, -2.0f, 2.0f);
    check_gradient([&] { return softmax(x); }, {x});
    check_gradient([&] { return log_softmax(x); }, {x});
  }
}

TEST_CASE("softmax and log_softmax refuse a scalar", "[autograd][softmax][log_softmax]") {
  QUANTRAIN_CHECK_ERROR(softmax(Tensor::zeros({})), ShapeError, "[softmax] needs an axis");
  QUANTRAIN_CHECK_ERROR(log_softmax(Tensor::zeros({})), ShapeError, "[log_softmax] needs an axis");
  CHECK(softmax(Tensor::zeros({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("softmax of codes rounds once, by (26), and its mask says where the gradient passes",
          "[autograd][softmax][integer]") {
  struct Output {
    QType type;
    int32_t zero;
  };
  const Output outputs[] = {{test::activation_types()[0], 100},
                            {test::activation_types()[1], -30},
                            {test::activation_types()[2], 5},
                            {test::activation_types()[3], -3},
                            {test::activation_types()[4], 2}};
  REQUIRE(std::size(outputs) == test::activation_types().size());
  for (const Output& output : outputs) {
    for (const int64_t classes : {1, 3, 17, 5000}) {
      const Tensor x =
          test::activations({2, 3, classes}, output.type, 0.3f, test::zero_of(output.type), 1);
      const Tensor y = softmax(x);
      const uint8_t* const codes = x.codes()->u8();
      for (const float scale_y : {0.1f, 1.0f / 15.0f, 1e-4f}) {
        CAPTURE(output.type, classes, scale_y);
        const QParams to = test::activation_params(output.type, scale_y, output.zero);
        const auto op =
            integer::QuantizedSoftmax::make(3, classes, x.codes()->params, to, Activation::kNone);
        std::vector<int64_t> unclamped;
        for (int64_t first = 0; first < x.elements(); first += classes) {
          const integer::SoftmaxRow row(op.powers, codes + first, classes);
          for (int64_t i = first; i < first + classes; ++i)
            unclamped.push_back(row.code(codes[i], op.multiplier, output.zero));
        }
        test::check_requantize(y, to, unclamped);
        test::check_requantize(relu(y), to, unclamped);
      }
    }
  }
}

TEST_CASE("cross_entropy is the mean of -log softmax at the labels", "[autograd][cross_entropy]") {
  for (const int64_t classes : {1, 2, 10, 15, 16, 17}) {
    const Tensor x = random_tensor({3, classes}, 6, -4.0f, 4.0f);
    const int32_t last = static_cast<int32_t>(classes) - 1;
    const std::vector<int32_t> labels{0, last, last / 2};
    const std::vector<float> log_y = values(log_softmax(x));
    double expected = 0.0;
    for (size_t i = 0; i < 3; ++i) {
      expected -=
          double{log_y[i * static_cast<size_t>(classes) + static_cast<size_t>(labels[i])]} / 3.0;
    }
    CAPTURE(classes);
    CHECK(cross_entropy(x, labels).item() == test::Approx(expected).margin(kSoftmaxMargin));
  }
}

TEST_CASE("cross_entropy gradient matches finite differences, also for a scaled loss",
          "[autograd][cross_entropy]") {
  const std::vector<int32_t> labels{3, 0, 9, 3};
  const Tensor x = random_leaf({4, 10}, 8, -2.0f, 2.0f);
  check_gradient([&] { return cross_entropy(x, labels); }, {x});
  const Tensor factor = random_leaf({1}, 9, 2.0f, 3.0f);
  check_gradient([&] { return mul(cross_entropy(x, labels), factor); }, {x, factor});
}

TEST_CASE("cross_entropy refuses labels and shapes that do not fit", "[autograd][cross_entropy]") {
  const Tensor x = Tensor::zeros({2, 3});
  const auto loss = [](const Tensor& logits, const std::vector<int32_t>& labels) {
    return cross_entropy(logits, labels);
  };
  QUANTRAIN_CHECK_ERROR(
      loss(x, {0, 3}), DataError, "[cross_entropy] label 3 of sample 1 is outside [0, 3)");
  QUANTRAIN_CHECK_ERROR(loss(x, {-1, 0}), DataError, "label -1 of sample 0");
  QUANTRAIN_CHECK_ERROR(loss(x, {0}), ShapeError, "1 labels for logits [2, 3]");
  QUANTRAIN_CHECK_ERROR(loss(Tensor::zeros({0, 3}), {}), ShapeError, "there is nothing to compare");
  QUANTRAIN_CHECK_ERROR(
      loss(Tensor::zeros({6}), {0}), ShapeError, "logits must be [..., C], got [6]");
}

}  // namespace quantrain
