// Cross entropy of pixels, ignored labels, and options for probabilities.
#include "framework/autograd/ops/cross_entropy.hpp"

#include <cmath>

#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::check_gradient;
using test::random_leaf;
using test::random_tensor;
using test::values;

namespace {

/// -log softmax(row)[c], for rows of three.
double surprise(const std::vector<float>& logits, size_t row, size_t c) {
  double sum = 0.0;
  for (size_t k = 0; k < 3; ++k) sum += std::exp(double{logits[3 * row + k]});
  return std::log(sum) - double{logits[3 * row + c]};
}

// Two images of 1 x 2 pixels, three classes.
const std::vector<float> kPixels{
    1.0f, 2.0f, 0.5f, -1.0f, 0.0f, 1.0f, 0.25f, 0.25f, 3.0f, 2.0f, -2.0f, 0.0f};
const std::vector<int32_t> kPixelLabels{1, 2, 0, 2};

}  // namespace

TEST_CASE("cross entropy of pixels is that of rows", "[autograd][cross_entropy]") {
  const Tensor images = Tensor::from({2, 1, 2, 3}, kPixels);
  const Tensor rows = Tensor::from({4, 3}, kPixels);
  const Tensor labels = Tensor::from({2, 1, 2}, std::vector{1.0f, 2.0f, 0.0f, 2.0f});
  const double mean = (surprise(kPixels, 0, 1) + surprise(kPixels, 1, 2) + surprise(kPixels, 2, 0) +
                       surprise(kPixels, 3, 2)) /
                      4.0;
  CHECK(cross_entropy(images, kPixelLabels).item() == test::Approx(mean));
  CHECK(cross_entropy(images, labels).item() == cross_entropy(rows, kPixelLabels).item());
  const CrossEntropyOptions options{.label_smoothing = 0.25f, .class_weights = {1.0f, 2.0f, 0.5f}};
  CHECK(cross_entropy(images, labels, options).item() ==
        cross_entropy(rows, kPixelLabels, options).item());
  // By hand: weights 2, 0.5, 1 and 0.5 of the labels.
  double sum = 0.0;
  const std::vector<double> w{1.0, 2.0, 0.5};
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      const bool own = static_cast<int32_t>(c) == kPixelLabels[r];
      sum += w[c] * ((own ? 0.75 : 0.0) + 0.25 / 3.0) * surprise(kPixels, r, c);
    }
  }
  CHECK(cross_entropy(images, labels, options).item() == test::Approx(sum / 4.0));

  const Tensor leaf = random_leaf({2, 3, 2, 3}, 1, -2.0f, 2.0f);
  const std::vector<int32_t> twelve{0, 1, 2, 0, 1, 2, 2, 1, 0, 2, 1, 0};
  check_gradient([&] { return cross_entropy(leaf, twelve); }, {leaf});
  check_gradient([&] { return cross_entropy(leaf, twelve, options); }, {leaf});
  const Tensor shares = random_tensor({2, 3, 2, 3}, 2, 0.0f, 1.0f);
  check_gradient([&] { return cross_entropy(leaf, shares); }, {leaf});
  check_gradient([&] { return cross_entropy(leaf, shares, options); }, {leaf});
}

TEST_CASE("cross entropy ignores rows without a label", "[autograd][cross_entropy]") {
  const std::vector<int32_t> labels{1, 255, 0, 255};
  Tensor logits = Tensor::from({4, 3}, kPixels);
  logits.set_requires_grad(true);
  const double mean = (surprise(kPixels, 0, 1) + surprise(kPixels, 2, 0)) / 2.0;
  const Tensor loss = cross_entropy(logits, labels, {.ignore_index = 255});
  CHECK(loss.item() == test::Approx(mean));
  Tensor(loss).backward();
  const std::vector<float> grad = values(logits.grad());
  for (const size_t i : {3u, 4u, 5u, 9u, 10u, 11u}) CHECK(grad[i] == 0.0f);
  CHECK(grad[1] != 0.0f);

  // With weights, the mean is over the weights of the labels that count.
  const CrossEntropyOptions weighted{.class_weights = {1.0f, 3.0f, 5.0f}, .ignore_index = -100};
  const double expected = (3.0 * surprise(kPixels, 0, 1) + surprise(kPixels, 2, 0)) / 4.0;
  CHECK(cross_entropy(logits, std::vector<int32_t>{1, -100, 0, -100}, weighted).item() ==
        test::Approx(expected));
  // Like a batch that lacks those rows, also with label smoothing.
  const Tensor two = Tensor::from(
      {2, 3}, std::vector{kPixels[0], kPixels[1], kPixels[2], kPixels[6], kPixels[7], kPixels[8]});
  CHECK(cross_entropy(logits, labels, {.label_smoothing = 0.5f, .ignore_index = 255}).item() ==
        test::Approx(
            cross_entropy(two, std::vector<int32_t>{1, 0}, {.label_smoothing = 0.5f}).item()));
  // A label that could count may be ignored, too. Where no row is, nothing changes.
  CHECK(cross_entropy(logits, std::vector<int32_t>{1, 2, 0, 2}, {.ignore_index = 2}).item() ==
        test::Approx(mean));
  CHECK(cross_entropy(logits, kPixelLabels, {.ignore_index = 255}).item() ==
        cross_entropy(logits, kPixelLabels).item());
  const Tensor leaf = random_leaf({4, 3}, 3, -2.0f, 2.0f);
  check_gradient([&] { return cross_entropy(leaf, labels, {.ignore_index = 255}); }, {leaf});
}

TEST_CASE("probabilities as targets take smoothing and weights", "[autograd][cross_entropy]") {
  const Tensor logits = Tensor::from({4, 3}, kPixels);
  std::vector<float> one_hot(12);
  for (size_t r = 0; r < 4; ++r) one_hot[3 * r + static_cast<size_t>(kPixelLabels[r])] = 1.0f;
  const Tensor targets = Tensor::from({4, 3}, one_hot);
  CHECK(cross_entropy(logits, targets, {.label_smoothing = 0.25f}).item() ==
        test::Approx(cross_entropy(logits, kPixelLabels, {.label_smoothing = 0.25f}).item()));
  // As in PyTorch, weights of probabilities do not change the mean's divisor.
  const double expected = (2.0 * surprise(kPixels, 0, 1) + 0.5 * surprise(kPixels, 1, 2) +
                           surprise(kPixels, 2, 0) + 0.5 * surprise(kPixels, 3, 2)) /
                          4.0;
  CHECK(cross_entropy(logits, targets, {.class_weights = {1.0f, 2.0f, 0.5f}}).item() ==
        test::Approx(expected));
}

TEST_CASE("cross entropy of pixels refuses labels that do not fit", "[autograd][cross_entropy]") {
  const Tensor images = Tensor::from({2, 1, 2, 3}, kPixels);
  QUANTRAIN_CHECK_ERROR(cross_entropy(images, std::vector<int32_t>{1, 2}),
                        ShapeError,
                        "2 labels for logits [2, 1, 2, 3]");
  QUANTRAIN_CHECK_ERROR(cross_entropy(images, std::vector<int32_t>{0, 0, 255, 0}),
                        DataError,
                        "label 255 at position 2 is outside [0, 3); if it means that there is no "
                        "label, set ignore_index");
  QUANTRAIN_CHECK_ERROR(cross_entropy(images, Tensor::full({2, 1, 2}, 0.5f)),
                        DataError,
                        "target 0 is 0.5, expected a label");
  QUANTRAIN_CHECK_ERROR(
      cross_entropy(images, Tensor::full({2, 1, 2}, test::kNan)), DataError, "target 0 is nan");
  QUANTRAIN_CHECK_ERROR(cross_entropy(images, Tensor::zeros({2, 2})), ShapeError, "[2, 2]");
  QUANTRAIN_CHECK_ERROR(cross_entropy(images, std::vector<int32_t>(4, 9), {.ignore_index = 9}),
                        DataError,
                        "all labels are ignored");
  QUANTRAIN_CHECK_ERROR(
      cross_entropy(images, images, {.ignore_index = 1}), DataError, "target 3 is -1");
  const Tensor shares = Tensor::full({2, 1, 2, 3}, 0.25f);
  QUANTRAIN_CHECK_ERROR(
      cross_entropy(images, shares, {.ignore_index = 1}), DataError, "ignore_index is for labels");
}

}  // namespace quantrain
