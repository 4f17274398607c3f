#include "framework/metrics/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>
#include <string>

#include "framework/autograd/xtensor.hpp"
#include "framework/core/error.hpp"
#include "framework/core/text_table.hpp"

namespace quantrain {
namespace {

using LabelSpan = std::span<const int32_t>;

void check_rows(const char* where, const Tensor& scores) {
  if (scores.rank() != 2 || scores.dim(1) < 1)
    throw ShapeError(where, "scores are ", scores.shape(), ", expected [N, classes]");
}

void check_numbers(const char* where, const Tensor& values) {
  const ConstArray array = as_const_array(values);
  if (xt::any(xt::isnan(array))) throw DataError(where, "a value is NaN");
}

void check_labels(const char* where, LabelSpan labels, int64_t rows, int64_t classes) {
  if (static_cast<int64_t>(labels.size()) != rows)
    throw DataError(where, labels.size(), " labels for ", rows, " rows");
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes)
      throw DataError(where, "label ", labels[i], " at ", i, " is not in [0, ", classes, ")");
  }
}

double share(int64_t part, int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

std::vector<int32_t> predicted_classes(const Tensor& scores) {
  check_rows("predicted_classes", scores);
  check_numbers("predicted_classes", scores);
  const int64_t classes = scores.dim(1);
  const Floats values = scores.floats();
  std::vector<int32_t> best;
  for (int64_t begin = 0; begin < scores.elements(); begin += classes) {
    const float* const row = values.data() + begin;
    best.push_back(static_cast<int32_t>(std::max_element(row, row + classes) - row));
  }
  return best;
}

int64_t count_top_k(const Tensor& scores, LabelSpan labels, int64_t k) {
  check_rows("count_top_k", scores);
  check_numbers("count_top_k", scores);
  const int64_t classes = scores.dim(1);
  check_labels("count_top_k", labels, scores.dim(0), classes);
  if (k < 1 || k > classes)
    throw DataError("count_top_k", "k is ", k, ", expected 1 to the ", classes, " classes");
  if (labels.empty()) return 0;
  const ConstArray rows = as_const_array(scores);
  xt::xarray<float> own = xt::zeros<float>({labels.size(), size_t{1}});
  xt::xarray<int32_t> label = xt::zeros<int32_t>({labels.size(), size_t{1}});
  for (size_t i = 0; i < labels.size(); ++i) {
    own(i, 0) = rows(i, static_cast<size_t>(labels[i]));
    label(i, 0) = labels[i];
  }
  const auto before = (rows > own) || (xt::equal(rows, own) &&
                                       xt::arange<int32_t>(static_cast<int32_t>(classes)) < label);
  const xt::xarray<int64_t> rank = xt::sum(xt::cast<int64_t>(before), {1});
  return std::count_if(rank.begin(), rank.end(), [k](int64_t r) { return r < k; });
}

double mean_squared_error(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.elements() == 0)
    throw ShapeError("mean_squared_error",
                     "shapes are ",
                     a.shape(),
                     " and ",
                     b.shape(),
                     ", expected equal shapes with at least one element");
  const ConstArray left = as_const_array(a);
  const ConstArray right = as_const_array(b);
  const double sum = xt::sum(xt::square(xt::cast<double>(left) - xt::cast<double>(right)))();
  if (std::isnan(sum)) throw DataError("mean_squared_error", "the result is NaN");
  return sum / static_cast<double>(a.elements());
}

double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive) {
  const auto fail = [](const auto&... parts) { throw DataError("area_under_curve", parts...); };
  if (scores.size() != positive.size())
    fail(scores.size(), " scores, but positive has ", positive.size(), " elements");
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) fail("score ", i, " is NaN");
    if (positive[i] > 1) fail("sample ", i, " is ", int{positive[i]}, ", expected 0 or 1");
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  // `twice` counts each pair of a positive and a negative sample: 2 if the positive sample has the
  // higher score, 1 if the scores are equal.
  int64_t negatives = 0;
  int64_t positives = 0;
  double twice = 0.0;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t equal[2] = {0, 0};
    while (end < order.size() && scores[order[end]] == scores[order[begin]])
      ++equal[positive[order[end++]]];
    twice += static_cast<double>(equal[1]) * static_cast<double>(2 * negatives + equal[0]);
    negatives += equal[0];
    positives += equal[1];
  }
  if (negatives == 0 || positives == 0)
    fail(
        "there are ", positives, " positive and ", negatives, " negative samples: both are needed");
  return twice / 2.0 / (static_cast<double>(negatives) * static_cast<double>(positives));
}

ConfusionMatrix::ConfusionMatrix(int64_t classes) : classes_(classes) {
  constexpr int64_t most = 1 << 15;
  if (classes < 1 || classes > most)
    throw DataError("ConfusionMatrix", classes, " classes, expected 1 to ", most);
  counts_.resize(static_cast<size_t>(classes * classes));
}

void ConfusionMatrix::add(LabelSpan predicted, LabelSpan labels) {
  const auto rows = static_cast<int64_t>(predicted.size());
  check_labels("ConfusionMatrix", labels, rows, classes_);
  check_labels("ConfusionMatrix, predictions", predicted, rows, classes_);
  for (size_t i = 0; i < labels.size(); ++i)
    ++counts_[static_cast<size_t>(labels[i] * classes_ + predicted[i])];
}

void ConfusionMatrix::add(const Tensor& scores, LabelSpan labels) {
  add(predicted_classes(scores), labels);
}

int64_t ConfusionMatrix::count(int64_t label, int64_t predicted) const {
  if (label < 0 || label >= classes_ || predicted < 0 || predicted >= classes_)
    throw DataError("ConfusionMatrix",
                    "label ",
                    label,
                    " or prediction ",
                    predicted,
                    " is outside [0, ",
                    classes_,
                    ")");
  return counts_[static_cast<size_t>(label * classes_ + predicted)];
}

int64_t ConfusionMatrix::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

int64_t ConfusionMatrix::correct() const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes_; ++c) sum += count(c, c);
  return sum;
}

double ConfusionMatrix::accuracy() const { return share(correct(), total()); }

double ConfusionMatrix::precision(int64_t predicted) const {
  int64_t all = 0;
  for (int64_t label = 0; label < classes_; ++label) all += count(label, predicted);
  return share(count(predicted, predicted), all);
}

double ConfusionMatrix::recall(int64_t label) const {
  int64_t all = 0;
  for (int64_t predicted = 0; predicted < classes_; ++predicted) all += count(label, predicted);
  return share(count(label, label), all);
}

double ConfusionMatrix::f1(int64_t label) const {
  const double p = precision(label);
  const double r = recall(label);
  return p + r == 0.0 ? 0.0 : 2.0 * p * r / (p + r);
}

std::ostream& operator<<(std::ostream& stream, const ConfusionMatrix& matrix) {
  const int64_t classes = matrix.classes();
  TextTable table(std::string(static_cast<size_t>(classes) + 2, 'r'));
  std::vector<std::string> head = {"label"};
  for (int64_t c = 0; c < classes; ++c) head.push_back(std::to_string(c));
  head.emplace_back("recall");
  table.add(std::move(head));
  for (int64_t label = 0; label < classes; ++label) {
    std::vector<std::string> row = {std::to_string(label)};
    for (int64_t c = 0; c < classes; ++c) row.push_back(std::to_string(matrix.count(label, c)));
    row.push_back(decimals(100.0 * matrix.recall(label), 1) + " %");
    table.add(std::move(row));
  }
  return stream << table;
}

}  // namespace quantrain
