#include "framework/autograd/grad_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

constexpr const char* kGradCheck = "grad_check";
constexpr double kRounding = 0x1p-24;  // relative rounding error of a float32

// sum(x * factors), in double.
double contract(const Tensor& x, const Tensor& factors) {
  const Floats values = x.floats();
  double sum = 0.0;
  for (int64_t i = 0; i < x.elements(); ++i)
    sum += double{values.data()[i]} * double{factors.data()[i]};
  return sum;
}

class ContractNode : public Node {
 public:
  explicit ContractNode(Tensor factors) : factors_(std::move(factors)) {}
  std::string_view type() const override { return "contract"; }
  std::vector<Tensor> backward(Tensor) override { return {factors_}; }

 private:
  Tensor factors_;
};

Tensor random_like(const Tensor& x, uint64_t seed) {
  Tensor factors = Tensor::empty(x.shape());
  Random random(seed);
  float* const out = factors.mutable_data();
  for (int64_t i = 0; i < factors.elements(); ++i) out[i] = random.uniform(-1.0f, 1.0f);
  return factors;
}

void check_inputs(const std::vector<Tensor>& inputs) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].node() != nullptr) throw GraphError(kGradCheck, "input ", i, " is not a leaf");
    any = any || inputs[i].requires_grad();
  }
  if (!any) throw GraphError(kGradCheck, "no input requires a gradient");
}

// Clears the leaves' gradients; the destructor restores them. If a leaf is listed twice, only its
// first entry holds the original gradient, so the destructor restores the first entry last.
class KeepGradients {
 public:
  explicit KeepGradients(std::vector<Tensor> leaves) : leaves_(std::move(leaves)) {
    for (Tensor& leaf : leaves_) {
      grads_.push_back(leaf.grad());
      leaf.zero_grad();
    }
  }
  ~KeepGradients() {
    for (size_t i = leaves_.size(); i-- > 0;) leaves_[i].set_grad(grads_[i]);
  }
  KeepGradients(const KeepGradients&) = delete;
  KeepGradients& operator=(const KeepGradients&) = delete;

 private:
  std::vector<Tensor> leaves_;
  std::vector<Tensor> grads_;
};

// Gives one element another value during the lifetime of this object.
class Moved {
 public:
  Moved(Tensor& tensor, int64_t i, float value) : tensor_(tensor), i_(i), old_(tensor.data()[i]) {
    tensor_.mutable_data()[i_] = value;
  }
  ~Moved() { tensor_.mutable_data()[i_] = old_; }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

 private:
  Tensor& tensor_;
  int64_t i_;
  float old_;
};

struct Quotient {
  double value;
  double rounding;  // bound on the rounding error of `value`
};

class Comparison {
 public:
  Comparison(const std::function<Tensor()>& function,
             Tensor factors,
             const GradCheckOptions& options)
      : function_(function), factors_(std::move(factors)), options_(options) {}

  void check(size_t index, Tensor input) {
    std::vector<double> numeric;
    double scale = 0.0;
    for (int64_t i = 0; i < input.elements(); ++i) {
      const Quotient quotient = this->quotient(input, i);
      numeric.push_back(quotient.value);
      scale = std::max({scale, std::abs(quotient.value), quotient.rounding / options_.tolerance});
    }
    const Tensor grad = input.grad();
    for (int64_t i = 0; i < input.elements(); ++i) {
      const double analytic = grad.defined() ? double{grad.floats()[i]} : 0.0;
      compare(index, input, i, analytic, numeric[static_cast<size_t>(i)], scale);
    }
  }

  GradCheckResult result() && { return std::move(result_); }

 private:
  Quotient quotient(Tensor& input, int64_t i) const {
    const float x = input.data()[i];
    const float step = options_.step * std::max(1.0f, std::abs(x));
    const float above = x + step;
    const float below = x - step;
    const auto values_at = [&](float value) {
      const Moved moved(input, i, value);
      const Tensor y = function_();
      const Floats floats = y.floats();  // may alias the input
      return std::vector<float>(floats.data(), floats.data() + y.elements());
    };
    const std::vector<float> y_above = values_at(above);
    const std::vector<float> y_below = values_at(below);
    double difference = 0.0;
    double magnitude = 0.0;  // sum of |factor * y| over the elements that change
    for (size_t j = 0; j < y_above.size(); ++j) {
      if (y_above[j] == y_below[j]) continue;
      const double factor = factors_.data()[j];
      difference += factor * (double{y_above[j]} - double{y_below[j]});
      magnitude += std::abs(factor) * std::max(std::abs(y_above[j]), std::abs(y_below[j]));
    }
    const double distance = double{above} - double{below};
    return {difference / distance, 2.0 * kRounding * magnitude / distance};
  }

  void compare(
      size_t index, const Tensor& input, int64_t i, double analytic, double numeric, double scale) {
    const double difference = std::abs(analytic - numeric);
    double error = difference == 0.0 ? 0.0 : difference / scale;
    if (!std::isfinite(difference)) error = std::numeric_limits<double>::infinity();
    if (error <= result_.max_error && !result_.worst.empty()) return;
    TextStream text;
    text << "input " << index;
    if (!input.name().empty()) text << " (" << input.name() << ')';
    text << ' ' << input.shape() << " element " << i << ": analytic " << analytic << ", numeric "
         << numeric;
    result_ = {error, text.str(), error <= options_.tolerance};
  }

  const std::function<Tensor()>& function_;
  Tensor factors_;
  GradCheckOptions options_;
  GradCheckResult result_;
};

}  // namespace

GradCheckResult grad_check(const std::function<Tensor()>& function,
                           const std::vector<Tensor>& inputs,
                           const GradCheckOptions& options) {
  if (!function) throw GraphError(kGradCheck, "there is no function to check");
  check_inputs(inputs);
  const KeepGradients keep(inputs);
  const Tensor y = function();
  if (!y.requires_grad())
    throw GraphError(kGradCheck, "the function's result requires no gradient");
  const Tensor factors = random_like(y, options.seed);
  const double value = contract(y, factors);
  Tensor loss = record<ContractNode>(Tensor::full({1}, static_cast<float>(value)), {y}, factors);
  loss.backward();

  const NoGrad no_grad;
  const double again = contract(function(), factors);
  if (again != value && !(std::isnan(again) && std::isnan(value))) {
    throw GraphError(
        kGradCheck, "the function gave ", value, ", then ", again, " for the same inputs");
  }
  Comparison comparison(function, factors, options);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad()) comparison.check(i, inputs[i]);
  }
  return std::move(comparison).result();
}

}  // namespace quantrain
