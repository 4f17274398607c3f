#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// The results of one evaluation, by name: {{"accuracy", 0.91}}.
using Metrics = std::map<std::string, double>;

/// The class of each row: the index of its largest score. Among equal scores, the lowest index
/// wins.
/// Shapes: scores [N, classes]  ->  [N].
/// Throws: ShapeError unless scores have two axes and at least one class; DataError if a score is
/// NaN.
std::vector<int32_t> predicted_classes(const Tensor& scores);

/// Number of rows whose label has one of the k largest scores. Among equal scores, the lower class
/// comes first.
/// Shapes: scores [N, classes], labels [N] in [0, classes).
/// Throws: as predicted_classes(); DataError also if there is not one label for each row, a label
/// is out of range, or k is not in [1, classes].
int64_t count_top_k(const Tensor& scores, std::span<const int32_t> labels, int64_t k);

/// The mean of (a - b)^2 over all elements, in double precision.
/// Throws: ShapeError if the shapes differ or there are no elements; DataError if the result is
/// NaN.
double mean_squared_error(const Tensor& a, const Tensor& b);

/// The area under the receiver operating characteristic: the probability that a positive sample has
/// a higher score than a negative one. Equal scores count one half.
/// Shapes: scores [N], positive [N], 0 or 1.
/// Throws: DataError if the lengths differ, an element of positive is not 0 or 1, a score is NaN,
/// or there is no positive or no negative sample.
/// Source: Mann and Whitney 1947; Fawcett 2006, section 7
double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive);

/// For each pair of classes (a, b), counts the samples of class a that were predicted as class b.
class ConfusionMatrix {
 public:
  // Declares copies but no moves, because a moved-from matrix would have no counts.
  ConfusionMatrix(const ConfusionMatrix&) = default;
  ConfusionMatrix& operator=(const ConfusionMatrix&) = default;
  /// Throws: DataError unless classes is in [1, 2^15].
  explicit ConfusionMatrix(int64_t classes);

  /// Throws: DataError if the lengths differ or a class is out of range. If it throws, nothing is
  /// added.
  void add(std::span<const int32_t> predicted, std::span<const int32_t> labels);
  /// The same with predicted_classes(scores) as predictions.
  /// Throws: as above, and as predicted_classes().
  void add(const Tensor& scores, std::span<const int32_t> labels);

  int64_t classes() const { return classes_; }
  /// Number of samples of class `label` that were predicted as class `predicted`.
  /// Throws: DataError if a class is out of range; so do precision(), recall() and f1().
  int64_t count(int64_t label, int64_t predicted) const;
  int64_t total() const;
  int64_t correct() const;
  /// correct() / total(); 0 if there are no samples.
  double accuracy() const;
  /// Of the samples predicted as this class, the share that belongs to this class; 0 if there are
  /// none.
  double precision(int64_t predicted) const;
  /// Of the samples of class `label`, the share that was predicted as this class; 0 if there are
  /// none.
  double recall(int64_t label) const;
  /// 2 * precision * recall / (precision + recall); 0 if both are 0.
  double f1(int64_t label) const;

 private:
  std::vector<int64_t> counts_;  // [label][predicted]
  int64_t classes_;
};

/// Prints a row for each label, with a column for each prediction and the recall at the end.
std::ostream& operator<<(std::ostream& stream, const ConfusionMatrix& matrix);

}  // namespace quantrain
