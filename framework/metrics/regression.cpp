#include "framework/metrics/regression.hpp"

#include <cmath>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

constexpr const char* kErrors = "RegressionErrors";

double mean_over_outputs(const RegressionErrors& errors,
                         double (RegressionErrors::*value)(int64_t) const) {
  double sum = 0.0;
  for (int64_t k = 0; k < errors.outputs(); ++k) sum += (errors.*value)(k);
  return sum / static_cast<double>(errors.outputs());
}

}  // namespace

void RegressionErrors::add(const Tensor& predicted, const Tensor& target) {
  if (!(predicted.shape() == target.shape()) || predicted.elements() == 0)
    throw ShapeError(kErrors,
                     "predictions are ",
                     predicted.shape(),
                     " and targets ",
                     target.shape(),
                     ", expected equal shapes with at least one element");
  const int64_t outputs = predicted.rank() < 2 ? 1 : predicted.dim(predicted.rank() - 1);
  if (!sums_.empty() && outputs != this->outputs())
    throw ShapeError(
        kErrors, "there are ", outputs, " outputs, but ", this->outputs(), " in the first call");
  const Floats y = predicted.floats();
  const Floats t = target.floats();
  const int64_t n = predicted.elements();
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(y[i])) throw DataError(kErrors, "prediction ", i, " is ", y[i]);
    if (!std::isfinite(t[i])) throw DataError(kErrors, "target ", i, " is ", t[i]);
  }
  sums_.resize(static_cast<size_t>(outputs));
  for (int64_t i = 0; i < n; ++i) {
    Sums& sums = sums_[static_cast<size_t>(i % outputs)];
    const double error = double{y[i]} - double{t[i]};
    sums.absolute += std::abs(error);
    sums.squared += error * error;
    // Welford's method keeps all digits of targets that lie far from 0.
    const auto before = static_cast<double>(count_ + i / outputs);
    const double distance = double{t[i]} - sums.mean;
    sums.mean += distance / (before + 1.0);
    sums.deviation += distance * (double{t[i]} - sums.mean);
  }
  count_ += n / outputs;
}

const RegressionErrors::Sums& RegressionErrors::at(int64_t output) const {
  if (output < 0 || output >= outputs())
    throw DataError(kErrors, "output ", output, " is outside [0, ", outputs(), ")");
  return sums_[static_cast<size_t>(output)];
}

double RegressionErrors::mae(int64_t output) const {
  return at(output).absolute / static_cast<double>(count_);
}

double RegressionErrors::mse(int64_t output) const {
  return at(output).squared / static_cast<double>(count_);
}

double RegressionErrors::rmse(int64_t output) const { return std::sqrt(mse(output)); }

double RegressionErrors::r2(int64_t output) const {
  const Sums& sums = at(output);
  if (sums.squared == 0.0) return 1.0;
  return sums.deviation == 0.0 ? 0.0 : 1.0 - sums.squared / sums.deviation;
}

double mean_absolute_error(const Tensor& a, const Tensor& b) {
  RegressionErrors errors;
  errors.add(a, b);
  return mean_over_outputs(errors, &RegressionErrors::mae);
}

double r2_score(const Tensor& predicted, const Tensor& target) {
  RegressionErrors errors;
  errors.add(predicted, target);
  return mean_over_outputs(errors, &RegressionErrors::r2);
}

}  // namespace quantrain
