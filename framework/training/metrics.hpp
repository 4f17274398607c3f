#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// The class of each row: the index of its largest score, the lowest among equals.
/// Shapes: scores [N, classes]  ->  [N].
/// Throws: ShapeError if scores are no rows of at least one class; DataError if one is NaN.
std::vector<int32_t> predicted_classes(const Tensor& scores);

/// Rows whose label's score is among the k largest; among equal scores the lower class comes first.
/// Shapes: scores [N, classes], labels [N] in [0, classes).
/// Throws: ShapeError, DataError also if labels are not as many or out of range, or k is not in
/// [1, classes].
int64_t count_top_k(const Tensor& scores, std::span<const int32_t> labels, int64_t k);

/// The mean of (a - b)^2 over all elements, added up in double precision.
/// Throws: ShapeError if the shapes differ or are empty; DataError if an element is NaN.
double mean_squared_error(const Tensor& a, const Tensor& b);

/// The area under the receiver operating characteristic: the probability that a positive sample has
/// a higher score than a negative one, equal scores counting one half.
/// Shapes: scores [N], positive [N], 0 or 1.
/// Throws: DataError if they are not as many, a score is NaN, or one of the two kinds is missing.
/// Source: Mann and Whitney 1947; Fawcett 2006, section 7
double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive);

/// How many samples of each class were taken for which.
class ConfusionMatrix {
 public:
  /// Throws: DataError unless there is at least one class.
  explicit ConfusionMatrix(int64_t classes);

  /// Throws: DataError if they are not as many, or one is out of range: then nothing is added.
  void add(std::span<const int32_t> predicted, std::span<const int32_t> labels);
  /// Predictions are predicted_classes(scores).   Throws: also as these.
  void add(const Tensor& scores, std::span<const int32_t> labels);

  int64_t classes() const { return classes_; }
  /// Samples of class `label` that were taken for class `predicted`.
  int64_t count(int64_t label, int64_t predicted) const;
  int64_t total() const;
  int64_t correct() const;
  /// correct() / total(); 0 before there are samples.
  double accuracy() const;
  /// Of those taken for the class, the share that is of it; 0 if there is none.
  double precision(int64_t predicted) const;
  /// Of those that are of the class, the share taken for it; 0 if there is none.
  double recall(int64_t label) const;
  /// 2 * precision * recall / (precision + recall); 0 if both are.
  double f1(int64_t label) const;

 private:
  std::vector<int64_t> counts_;  // [label][predicted]
  int64_t classes_;
};

/// A row for each label, a column for each prediction, recall at the end of each row.
std::ostream& operator<<(std::ostream& stream, const ConfusionMatrix& matrix);

}  // namespace quantrain
