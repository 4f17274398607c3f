#include "framework/data/splits.hpp"

#include <algorithm>
#include <numeric>

#include "framework/core/error.hpp"
#include "framework/data/features.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

using Parts = std::vector<std::vector<int64_t>>;

// Checks that each of the samples 0 to n - 1 is in exactly one part.
void check_partition(const Parts& parts, int64_t n) {
  std::vector<int64_t> all;
  for (const auto& part : parts) {
    CHECK(std::is_sorted(part.begin(), part.end()));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(static_cast<size_t>(n));
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

// counts[c] labels of each class c, one class after the other.
std::vector<int32_t> labels_with(const std::vector<int64_t>& counts) {
  std::vector<int32_t> labels;
  for (size_t c = 0; c < counts.size(); ++c)
    labels.insert(labels.end(), static_cast<size_t>(counts[c]), static_cast<int32_t>(c));
  return labels;
}

Dataset images(const std::vector<int32_t>& labels, int64_t classes) {
  const auto n = static_cast<int64_t>(labels.size());
  return {{n, 1}, std::vector<uint8_t>(labels.size()), labels, classes};
}

}  // namespace

TEST_CASE("a split puts every sample into one part, and the seed decides which", "[data][splits]") {
  const std::vector<double> fractions{0.7, 0.2, 0.1};
  const Parts parts = split_indices(101, fractions, 3);
  check_partition(parts, 101);
  CHECK(parts[0].size() == 71);
  CHECK(parts[1].size() == 20);
  CHECK(parts[2].size() == 10);
  CHECK(split_indices(101, fractions, 3) == parts);
  CHECK(split_indices(101, fractions, 4) != parts);
  // This split is pinned, because another one would move samples between training and test data.
  CHECK(split_indices(10, std::vector<double>{0.7, 0.3}, 1)[1] == std::vector<int64_t>{4, 5, 8});
  const Parts some = split_indices(100, std::vector<double>{0.1, 0.2});
  CHECK(some[0].size() == 10);
  CHECK(some[1].size() == 20);
  CHECK(split_indices(2, std::vector<double>{0.99, 0.01})[1].size() == 1);
  // Parts of 0.3 samples each: both would be empty.
  for (const std::vector<int64_t>& part : split_indices(3, std::vector<double>{0.1, 0.1}))
    CHECK(part.size() == 1);
}

TEST_CASE("every part of a stratified split has its share of every class", "[data][splits]") {
  const std::vector<int64_t> counts{100, 10, 3, 37};
  const std::vector<int32_t> labels = labels_with(counts);
  const std::vector<double> fractions{0.8, 0.2};
  const Parts parts = stratified_indices(labels, 4, fractions, 7);
  check_partition(parts, 150);
  for (size_t p = 0; p < 2; ++p) {
    std::vector<int32_t> of_part;
    for (const int64_t i : parts[p]) of_part.push_back(labels[static_cast<size_t>(i)]);
    const std::vector<int64_t> seen = class_counts(of_part, 4);
    for (size_t c = 0; c < 4; ++c) {
      CHECK(seen[c] >= 1);
      CHECK(std::abs(static_cast<double>(seen[c]) - static_cast<double>(counts[c]) * fractions[p]) <
            1.5);
    }
  }
  // Shares of 3.5 samples are rounded so that the total is exact.
  CHECK(stratified_indices(labels_with({5, 5, 5, 5}), 4, std::vector<double>{0.7, 0.3}, 1)[0]
            .size() == 14);
  for (const std::vector<int64_t>& part :
       stratified_indices(labels_with({3, 1, 3}), 3, std::vector<double>{0.1}, 1))
    CHECK(part.size() == 3);  // one of each class
  CHECK(stratified_indices(labels, 4, fractions, 7) == parts);
  CHECK(stratified_indices(labels, 4, fractions, 8) != parts);
}

TEST_CASE("a class that is missing from a part is an error", "[data][splits]") {
  const std::vector<int32_t> labels = labels_with({10, 1, 10});
  QUANTRAIN_CHECK_ERROR(
      stratified_indices(labels, 3, std::vector<double>{0.5, 0.5}),
      DataError,
      "[split] class 1 has no sample in part 1 of 2; the data set has 1 of this class: collect "
      "more, or leave the class out");
  QUANTRAIN_CHECK_ERROR(stratified_indices(labels, 4, std::vector<double>{0.5}),
                        DataError,
                        "class 3 has no sample in part 0 of 1; the data set has 0 of this class");
  QUANTRAIN_CHECK_ERROR(
      split(images(labels_with({96, 4}), 2), {0.97, 0.03}, {.seed = 1, .stratified = false}),
      DataError,
      "has no sample in part 1 of 2; the data set has 4 of this class: use a stratified split");
}

TEST_CASE("the parts of a data set are data sets that share its values", "[data][splits]") {
  const std::vector<int32_t> labels = labels_with({6, 4});
  const std::vector<Dataset> parts = split(images(labels, 2), {0.5, 0.5}, {.seed = 2});
  CHECK(class_counts(parts[0]) == std::vector<int64_t>{3, 2});
  CHECK(class_counts(parts[1]) == std::vector<int64_t>{3, 2});

  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7};
  const TensorDataset regression(SampleArray::floats({8, 1}, values),
                                 SampleArray::floats({8, 1}, values));
  const std::vector<TensorDataset> two = split(regression, {0.75, 0.25}, {.seed = 2});
  CHECK(two[0].size() == 6);
  const Batch batch = two[1].batch(0, 2);
  CHECK(batch.input.data()[1] == batch.targets[0].data()[1]);
  CHECK(batch.input.data()[1] == static_cast<float>(two[1].row(1)));
}

TEST_CASE("normalization can be fitted on the rows of the training part alone", "[data][splits]") {
  const std::vector<float> values{0, 5, 10, 25, 1000, -7, 4, 15};
  const std::vector<float> train = rows_at(values, 2, std::vector<int64_t>{0, 1, 3});
  CHECK(train == std::vector<float>{0, 5, 10, 25, 4, 15});
  const InputFeatures features = fit_min_max(train, 2);
  CHECK(features == InputFeatures{{0, 5}, {10, 20}});
  const SampleArray test = SampleArray::encoded({1, 2},
                                                rows_at(values, 2, std::vector<int64_t>{2}),
                                                feature_range(train, features),
                                                features,
                                                Outside::kSaturate);
  CHECK(test.saturated() == 2);
  CHECK(int{test.sample_bytes(0)[0]} == 255);
  CHECK(int{test.sample_bytes(0)[1]} == 0);
  const InputFeatures tiny{{0.0f, 0.0f}, {1.0f, 1e-3f}};
  QUANTRAIN_CHECK_ERROR(
      SampleArray::encoded(
          {1, 2}, std::vector<float>{1.0f, 3e38f}, {0.0f, 1.0f}, tiny, Outside::kSaturate),
      DataError,
      "value 3e+38 of sample 0, element 1 overflows after the feature's offset and scale");
  QUANTRAIN_CHECK_ERROR(
      rows_at(values, 2, std::vector<int64_t>{4}), DataError, "row 4 is outside [0, 4)");
  QUANTRAIN_CHECK_ERROR(rows_at(values, 3, {}), DataError, "8 values do not form rows of 3");
}

TEST_CASE("fractions and labels that make no sense are refused", "[data][splits]") {
  const auto fractions = [](std::vector<double> of) { return split_indices(10, of); };
  QUANTRAIN_CHECK_ERROR(fractions({}), DataError, "there is no fraction");
  QUANTRAIN_CHECK_ERROR(
      fractions({0.5, 0.0}), DataError, "a fraction is 0, expected more than 0 and at most 1");
  QUANTRAIN_CHECK_ERROR(
      fractions({1.5}), DataError, "a fraction is 1.5, expected more than 0 and at most 1");
  QUANTRAIN_CHECK_ERROR(fractions({0.8, 0.3}), DataError, "the fractions sum to 1.1, above 1");
  QUANTRAIN_CHECK_ERROR(split_indices(1, std::vector<double>{0.5, 0.5}),
                        DataError,
                        "part 1 of 2 gets none of 1 samples: use fewer parts");
  QUANTRAIN_CHECK_ERROR(split_indices(0, std::vector<double>{1.0}), DataError, "0 samples cannot");
  QUANTRAIN_CHECK_ERROR(
      class_counts(std::vector<int32_t>{0, 2}, 2), DataError, "label 2 at 1 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(
      class_counts(std::vector<int32_t>{-1}, 2), DataError, "label -1 at 0 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(class_counts({}, 0), DataError, "number of classes is 0");
  const std::vector<float> values(4);
  const std::vector<int64_t> before_first{-1};
  QUANTRAIN_CHECK_ERROR(rows_at(values, 2, before_first), DataError, "row -1 is outside [0, 2)");
  QUANTRAIN_CHECK_ERROR(rows_at(values, 0, before_first), DataError, "do not form rows of 0");
}

}  // namespace quantrain
