#include "framework/metrics/evaluation.hpp"

#include <cmath>

#include "framework/core/error.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::values;

namespace {

/// Scores of three classes for five samples: three of the five are right.
const std::vector<float> kScores{
    2.0f, 1.0f, 0.0f, 0.0f, 3.0f, 1.0f, 1.0f, 0.0f, 0.5f, 0.0f, 1.0f, 2.0f, 4.0f, 0.0f, 0.0f};
const std::vector<int32_t> kLabels{0, 1, 2, 2, 1};

TensorDataset five_scores() { return {SampleArray::floats({5, 3}, kScores), Labels{kLabels, 3}}; }

std::vector<Tensor> pass_input(const Batch& batch) { return {batch.input}; }

}  // namespace

TEST_CASE("an evaluation of labels has accuracy, cross entropy and each class",
          "[training][metrics]") {
  for (const int64_t batch : {1, 2, 5}) {
    const DataLoader batches(five_scores(), {.batch = batch});
    const Metrics all =
        evaluate(pass_input, batches, {"accuracy", "cross_entropy", "recall", "precision", "f1"});
    CHECK(all.at("accuracy") == 3.0 / 5.0);
    double expected = 0.0;
    for (size_t i = 0; i < 5; ++i) {
      double sum = 0.0;
      for (size_t c = 0; c < 3; ++c) sum += std::exp(double{kScores[3 * i + c]});
      expected += std::log(sum) - double{kScores[3 * i + static_cast<size_t>(kLabels[i])]};
    }
    CHECK(all.at("cross_entropy") == test::Approx(expected / 5.0));
    CHECK(all.at("recall_0") == 1.0);
    CHECK(all.at("recall_1") == 0.5);
    CHECK(all.at("recall_2") == 0.5);
    CHECK(all.at("recall") == test::Approx(2.0 / 3.0));
    CHECK(all.at("precision_0") == test::Approx(1.0 / 3.0));
    CHECK(all.at("precision_1") == 1.0);
    CHECK(all.at("f1_0") == test::Approx(0.5));
    CHECK(all.size() == 14);
    const Metrics some = evaluate(pass_input, batches);
    CHECK(some.size() == 2);
    CHECK(some.at("accuracy") == all.at("accuracy"));
    CHECK(some.at("cross_entropy") == all.at("cross_entropy"));
  }
}

TEST_CASE("the mean recall leaves out classes that do not occur", "[training][metrics]") {
  Evaluation evaluation({"recall"});
  const std::vector<int32_t> labels{0, 0};
  evaluation.add(Tensor::from({2, 3}, std::vector{1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f}),
                 Batch{.input = {}, .labels = labels});
  CHECK(evaluation.metrics().at("recall") == 0.5);
  CHECK(evaluation.metrics().at("recall_2") == 0.0);
}

TEST_CASE("an evaluation of numbers has each output in its own unit", "[training][metrics]") {
  const std::vector<float> y{0.0f, 200.0f, 1.0f, 300.0f, 2.0f, 500.0f};
  const std::vector<float> t{0.5f, 200.0f, 1.0f, 310.0f, 2.5f, 500.0f};
  const DataLoader batches(
      TensorDataset{SampleArray::floats({3, 2}, y), SampleArray::floats({3, 2}, t)}, {.batch = 2});
  const Metrics metrics = evaluate(pass_input, batches);
  CHECK(metrics.at("mae_0") == test::Approx(1.0 / 3.0));
  CHECK(metrics.at("mae_1") == test::Approx(10.0 / 3.0));
  CHECK(metrics.at("mae") == test::Approx(11.0 / 6.0));
  CHECK(metrics.at("mse_1") == test::Approx(100.0 / 3.0));
  CHECK(metrics.contains("r2_1"));
  CHECK(metrics.size() == 9);
  CHECK(evaluate(pass_input, batches, {"rmse"}).at("rmse_1") ==
        test::Approx(10.0 / std::sqrt(3.0)));

  // One output has one entry, and so has each metric of very many outputs.
  for (const int64_t outputs : {int64_t{1}, Evaluation::kMostOutputs + 1}) {
    const std::vector<float> zeros(static_cast<size_t>(2 * outputs));
    const TensorDataset many(SampleArray::floats({2, outputs}, zeros),
                             SampleArray::floats({2, outputs}, zeros));
    CHECK(evaluate(pass_input, DataLoader(many)).size() == 3);
  }
}

TEST_CASE("an evaluation takes labels of pixels from targets", "[training][metrics]") {
  // Two images of one row of two pixels, with scores of two classes.
  const SampleArray scores =
      SampleArray::floats({2, 1, 2, 2}, {1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 1.0f, 0.0f});
  const SampleArray labels = SampleArray::floats({2, 1, 2}, {0.0f, 1.0f, 0.0f, 1.0f});
  CHECK(evaluate(pass_input, DataLoader(TensorDataset{scores, labels})).at("accuracy") == 0.75);
  const SampleArray halves = SampleArray::floats({2, 1, 2}, {0.0f, 0.5f, 0.0f, 1.0f});
  CHECK_THROWS_AS(evaluate(pass_input, DataLoader(TensorDataset{scores, halves})), DataError);
}

TEST_CASE("an evaluation leaves out rows whose label is ignored", "[training][metrics]") {
  // Scores of two classes for four pixels: of the three labeled ones, two are right.
  const std::vector<float> y{1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 9.0f, 0.0f};
  const auto batches = [&](const std::vector<float>& labels, int64_t batch) {
    return DataLoader(
        TensorDataset{SampleArray::floats({4, 1, 2}, y), SampleArray::floats({4, 1}, labels)},
        {.batch = batch});
  };
  const std::vector<std::string> names{"accuracy", "cross_entropy", "recall"};
  for (const int64_t batch : {1, 4}) {  // a batch of ignored labels adds nothing
    const Metrics metrics = evaluate(
        pass_input, batches({0.0f, 1.0f, 1.0f, 255.0f}, batch), names, {.ignore_index = 255});
    CHECK(metrics.at("accuracy") == test::Approx(2.0 / 3.0));
    CHECK(metrics.at("recall_0") == 1.0);
    CHECK(metrics.at("recall_1") == 0.5);
    const double wrong = std::log(1.0 + std::exp(1.0));
    CHECK(metrics.at("cross_entropy") == test::Approx((3.0 * wrong - 2.0) / 3.0));
  }
  CHECK_THROWS_AS(evaluate(pass_input, batches({0.0f, 1.0f, 1.0f, 255.0f}, 4), names), DataError);
  CHECK_THROWS_AS(
      evaluate(pass_input, batches({0.0f, 1.0f, 1.0f, 7.0f}, 4), names, {.ignore_index = 255}),
      DataError);
  QUANTRAIN_CHECK_ERROR(
      evaluate(pass_input, batches({9.0f, 9.0f, 9.0f, 9.0f}, 4), names, {.ignore_index = 9}),
      DataError,
      "all labels are ignore_index");
  const DataLoader numbers(
      TensorDataset{SampleArray::floats({4, 2}, y), SampleArray::floats({4, 2}, y)});
  QUANTRAIN_CHECK_ERROR(evaluate(pass_input, numbers, {}, {.ignore_index = 9}),
                        DataError,
                        "ignore_index is for labels");
}

TEST_CASE("targets [N] of an output [N, 1] are numbers", "[training][metrics]") {
  const SampleArray y = SampleArray::floats({3, 1}, {1.0f, 2.0f, 4.0f});
  // Whole numbers, which could be read as labels, too.
  for (const float last : {2.0f, 2.5f}) {
    const DataLoader batches(TensorDataset{y, SampleArray::floats({3}, {1.0f, 0.0f, last})},
                             {.batch = 2});
    const Metrics metrics = evaluate(pass_input, batches);
    CHECK(metrics.size() == 3);
    CHECK(metrics.at("mae") == test::Approx((2.0 + 4.0 - double{last}) / 3.0));
  }
}

TEST_CASE("predictions have the order of the batches", "[training][metrics]") {
  const DataLoader batches(five_scores(), {.batch = 2});
  const Tensor y = predict(pass_input, batches);
  CHECK(y.shape() == Shape{5, 3});
  CHECK(values(y) == kScores);
  const Runner two = [](const Batch& batch) { return std::vector{batch.input, batch.input}; };
  const std::vector<Tensor> both = predict_outputs(two, batches);
  REQUIRE(both.size() == 2);
  CHECK(values(both[1]) == kScores);
}

TEST_CASE("an evaluation refuses what it cannot compute", "[training][metrics]") {
  const DataLoader batches(five_scores(), {.batch = 2});
  CHECK_THROWS_WITH(
      evaluate(pass_input, batches, {"acuracy"}),
      test::ContainsSubstring("no metric \"acuracy\"") && test::ContainsSubstring("cross_entropy"));
  CHECK_THROWS_AS(evaluate(pass_input, batches, {"mae"}), DataError);
  const DataLoader numbers(
      TensorDataset{SampleArray::floats({5, 3}, kScores), SampleArray::floats({5, 3}, kScores)});
  CHECK_THROWS_AS(evaluate(pass_input, numbers, {"recall"}), DataError);
  const DataLoader without(TensorDataset{SampleArray::floats({5, 3}, kScores), Targets{}});
  CHECK_THROWS_AS(evaluate(pass_input, without), DataError);
  CHECK(values(predict(pass_input, without)) == kScores);
  const Runner two = [](const Batch& batch) { return std::vector{batch.input, batch.input}; };
  CHECK_THROWS_WITH(evaluate(two, batches), test::ContainsSubstring("predict_outputs"));
  CHECK_THROWS_AS(predict(two, batches), ShapeError);
  const Runner one_row = [](const Batch&) { return std::vector{Tensor::zeros({1, 3})}; };
  CHECK_THROWS_AS(predict(one_row, batches), ShapeError);
  CHECK_THROWS_AS(evaluate(one_row, batches), ShapeError);
  CHECK_THROWS_AS(Evaluation().metrics(), DataError);
}

}  // namespace quantrain
