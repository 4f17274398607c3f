#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// The errors of numbers that a network predicts: for each output alone, in that output's own unit.
/// Outputs are the indices along the last axis; tensors [N] have one output. Sums are doubles.
/// Shapes: predicted and target [N, ..., outputs].
class RegressionErrors {
 public:
  /// Throws: ShapeError if the shapes differ, if there are no elements, or if the number of outputs
  /// is not that of the first call; DataError if a value is NaN or infinite. If it throws, nothing
  /// is added.
  void add(const Tensor& predicted, const Tensor& target);

  int64_t outputs() const { return static_cast<int64_t>(sums_.size()); }
  /// Number of values of each output.
  int64_t count() const { return count_; }

  // Of one output. Each throws DataError if the output does not exist, which includes that nothing
  // was added.
  double mae(int64_t output) const;   ///< mean of |predicted - target|
  double mse(int64_t output) const;   ///< mean of (predicted - target)^2
  double rmse(int64_t output) const;  ///< sqrt(mse), in the unit of the target
  /// 1 - (sum of (predicted - target)^2) / (sum of (target - mean of the targets)^2): 1 if all is
  /// exact, 0 for a network that always says the mean. If all targets are equal: 1 if all is exact,
  /// else 0.
  /// Source: scikit-learn's r2_score.
  double r2(int64_t output) const;

 private:
  struct Sums {
    double absolute = 0.0;
    double squared = 0.0;
    double mean = 0.0;       // of the targets
    double deviation = 0.0;  // sum of squared distances of the targets from their mean
  };
  const Sums& at(int64_t output) const;

  std::vector<Sums> sums_;
  int64_t count_ = 0;
};

/// The mean of |a - b| over all elements, in double precision.
/// Throws: as RegressionErrors::add().
double mean_absolute_error(const Tensor& a, const Tensor& b);

/// The coefficient of determination R2 (RegressionErrors::r2), averaged over the outputs.
/// Throws: as RegressionErrors::add().
double r2_score(const Tensor& predicted, const Tensor& target);

}  // namespace quantrain
