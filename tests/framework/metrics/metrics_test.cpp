#include "framework/metrics/metrics.hpp"

#include <cmath>
#include <sstream>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"

namespace quantrain {
namespace {

using test::kNan;

Tensor rows(int64_t n, int64_t classes, const std::vector<float>& values) {
  return Tensor::from({n, classes}, values);
}

}  // namespace

// The examples are from scikit-learn's reference pages of confusion_matrix, top_k_accuracy_score,
// mean_squared_error and roc_auc_score.
TEST_CASE("metrics equal the published examples", "[training][metrics]") {
  ConfusionMatrix matrix(3);
  matrix.add(std::vector<int32_t>{0, 0, 2, 2, 0, 2}, std::vector<int32_t>{2, 0, 2, 2, 0, 1});
  const int64_t expected[3][3] = {{2, 0, 0}, {0, 0, 1}, {1, 0, 2}};
  for (int64_t label = 0; label < 3; ++label) {
    for (int64_t predicted = 0; predicted < 3; ++predicted)
      CHECK(matrix.count(label, predicted) == expected[label][predicted]);
  }
  CHECK(matrix.total() == 6);
  CHECK(matrix.accuracy() == 4.0 / 6.0);
  CHECK(matrix.precision(0) == 2.0 / 3.0);
  CHECK(matrix.recall(0) == 1.0);
  CHECK(matrix.f1(0) == test::Approx(0.8));
  CHECK(matrix.precision(1) == 0.0);
  CHECK(matrix.f1(1) == 0.0);

  const Tensor scores =
      rows(4, 3, {0.5f, 0.2f, 0.2f, 0.3f, 0.4f, 0.2f, 0.2f, 0.4f, 0.3f, 0.7f, 0.2f, 0.1f});
  const std::vector<int32_t> labels = {0, 1, 2, 2};
  CHECK(count_top_k(scores, labels, 1) == 2);
  CHECK(count_top_k(scores, labels, 2) == 3);
  CHECK(count_top_k(scores, labels, 3) == 4);
  CHECK(predicted_classes(scores) == std::vector<int32_t>{0, 1, 1, 0});

  CHECK(mean_squared_error(Tensor::from({4}, std::vector<float>{3.0f, -0.5f, 2.0f, 7.0f}),
                           Tensor::from({4}, std::vector<float>{2.5f, 0.0f, 2.0f, 8.0f})) == 0.375);
  CHECK(area_under_curve(std::vector<float>{0.1f, 0.4f, 0.35f, 0.8f},
                         std::vector<uint8_t>{0, 0, 1, 1}) == 0.75);
}

TEST_CASE("the area under the curve is the share of correctly ordered pairs",
          "[training][metrics]") {
  Random random(1);
  std::vector<float> scores;
  std::vector<uint8_t> positive;
  for (int i = 0; i < 301; ++i) {
    scores.push_back(static_cast<float>(random.below(20)));
    positive.push_back(static_cast<uint8_t>(random.below(3) == 0));
  }
  int64_t twice = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (positive[i] == 0 || positive[j] == 1) continue;
      ++pairs;
      twice += scores[i] > scores[j] ? 2 : scores[i] == scores[j] ? 1 : 0;
    }
  }
  CHECK(area_under_curve(scores, positive) ==
        static_cast<double>(twice) / 2.0 / static_cast<double>(pairs));
}

TEST_CASE("among equal scores, the lowest class comes first", "[training][metrics]") {
  const Tensor scores = rows(2, 3, {1.0f, 1.0f, 1.0f, 0.0f, 2.0f, 2.0f});
  CHECK(predicted_classes(scores) == std::vector<int32_t>{0, 1});
  CHECK(count_top_k(scores, std::vector<int32_t>{1, 2}, 1) == 0);
  CHECK(count_top_k(scores, std::vector<int32_t>{1, 2}, 2) == 2);
}

TEST_CASE("metrics of no rows are empty or 0", "[training][metrics]") {
  CHECK(predicted_classes(Tensor::zeros({0, 3})).empty());
  CHECK(count_top_k(Tensor::zeros({0, 3}), {}, 1) == 0);
  const ConfusionMatrix matrix(2);
  CHECK(matrix.accuracy() == 0.0);
  CHECK(matrix.recall(1) == 0.0);
}

TEST_CASE("a confusion matrix is printed with its recalls", "[training][metrics]") {
  ConfusionMatrix matrix(2);
  matrix.add(std::vector<int32_t>{0, 1, 1}, std::vector<int32_t>{0, 0, 1});
  std::ostringstream text;
  text << matrix;
  CHECK(text.str() ==
        "label  0  1   recall\n"
        "    0  1  1   50.0 %\n"
        "    1  0  1  100.0 %\n");
}

TEST_CASE("metrics refuse invalid inputs", "[training][metrics]") {
  const Tensor scores = rows(2, 2, {0.0f, 1.0f, 1.0f, 0.0f});
  QUANTRAIN_CHECK_ERROR(
      predicted_classes(Tensor::zeros({4})), ShapeError, "scores are [4], expected [N, classes]");
  QUANTRAIN_CHECK_ERROR(predicted_classes(rows(1, 2, {0.0f, kNan})), DataError, "is NaN");
  QUANTRAIN_CHECK_ERROR(
      count_top_k(scores, std::vector<int32_t>{0}, 1), DataError, "1 labels for 2 rows");
  QUANTRAIN_CHECK_ERROR(count_top_k(scores, std::vector<int32_t>{0, 2}, 1),
                        DataError,
                        "label 2 at 1 is not in [0, 2)");
  QUANTRAIN_CHECK_ERROR(count_top_k(scores, std::vector<int32_t>{0, 1}, 3),
                        DataError,
                        "k is 3, expected 1 to the 2 classes");
  QUANTRAIN_CHECK_ERROR(mean_squared_error(Tensor::zeros({2}), Tensor::zeros({3})),
                        ShapeError,
                        "shapes are [2] and [3]");
  QUANTRAIN_CHECK_ERROR(area_under_curve(std::vector<float>{1.0f}, std::vector<uint8_t>{1}),
                        DataError,
                        "there are 1 positive and 0 negative samples");
  QUANTRAIN_CHECK_ERROR(
      area_under_curve(std::vector<float>{kNan, 1.0f}, std::vector<uint8_t>{1, 0}),
      DataError,
      "score 0 is NaN");
  QUANTRAIN_CHECK_ERROR(area_under_curve(std::vector<float>{1.0f}, {}),
                        DataError,
                        "1 scores, but positive has 0 elements");
  ConfusionMatrix matrix(2);
  QUANTRAIN_CHECK_ERROR(matrix.add(std::vector<int32_t>{2}, std::vector<int32_t>{0}),
                        DataError,
                        "predictions] label 2 at 0 is not in [0, 2)");
  QUANTRAIN_CHECK_ERROR(matrix.add(std::vector<int32_t>{0, 1, 1}, std::vector<int32_t>{0}),
                        DataError,
                        "1 labels for 3 rows");
  CHECK(matrix.total() == 0);
  QUANTRAIN_CHECK_ERROR(matrix.count(1, 2), DataError, "label 1 or prediction 2 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(ConfusionMatrix(0), DataError, "0 classes");
}

}  // namespace quantrain
