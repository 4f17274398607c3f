#include "framework/autograd/grad_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "grad_check";

// sum(x * factors), in double: the differences of neighbouring values are small.
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
    if (inputs[i].node() != nullptr) throw GraphError(kWhere, "input ", i, " is not a leaf");
    any = any || inputs[i].requires_grad();
  }
  if (!any) throw GraphError(kWhere, "no input requires a gradient");
}

// Puts the gradients back that the leaves had before.
class KeepGradients {
 public:
  explicit KeepGradients(std::vector<Tensor> leaves) : leaves_(std::move(leaves)) {
    for (Tensor& leaf : leaves_) {
      grads_.push_back(leaf.grad());
      leaf.zero_grad();
    }
  }
  ~KeepGradients() {
    for (size_t i = 0; i < leaves_.size(); ++i) leaves_[i].set_grad(grads_[i]);
  }
  KeepGradients(const KeepGradients&) = delete;
  KeepGradients& operator=(const KeepGradients&) = delete;

 private:
  std::vector<Tensor> leaves_;
  std::vector<Tensor> grads_;
};

class Comparison {
 public:
  Comparison(const std::function<Tensor()>& function,
             Tensor factors,
             const GradCheckOptions& options)
      : function_(function), factors_(std::move(factors)), options_(options) {}

  void check(size_t index, Tensor input) {
    const Tensor grad = input.grad();
    for (int64_t i = 0; i < input.elements(); ++i) {
      const double analytic = grad.defined() ? double{grad.floats().data()[i]} : 0.0;
      compare(index, input, i, analytic, quotient(input, i));
    }
  }

  GradCheckResult result() && { return std::move(result_); }

 private:
  double quotient(Tensor& input, int64_t i) const {
    const float x = input.data()[i];
    const float step = options_.step * std::max(1.0f, std::abs(x));
    const auto value_at = [&](float moved) {
      input.mutable_data()[i] = moved;
      return contract(function_(), factors_);
    };
    const float above = x + step;
    const float below = x - step;
    const double difference = value_at(above) - value_at(below);
    input.mutable_data()[i] = x;
    return difference / (double{above} - double{below});
  }

  void compare(size_t index, const Tensor& input, int64_t i, double analytic, double numeric) {
    double error =
        std::abs(analytic - numeric) / std::max({1.0, std::abs(analytic), std::abs(numeric)});
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    if (error <= result_.max_error && !result_.worst.empty()) return;
    std::ostringstream text;
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
  check_inputs(inputs);
  const KeepGradients keep(inputs);
  const Tensor y = function();
  if (!y.requires_grad()) throw GraphError(kWhere, "the function's result requires no gradient");
  const Tensor factors = random_like(y, options.seed);
  const double value = contract(y, factors);
  Tensor loss = record<ContractNode>(Tensor::full({1}, static_cast<float>(value)), {y}, factors);
  loss.backward();

  const NoGrad no_grad;
  const double again = contract(function(), factors);
  if (again != value && !(std::isnan(again) && std::isnan(value))) {
    throw GraphError(kWhere, "the function gave ", value, ", then ", again, " for the same inputs");
  }
  Comparison comparison(function, factors, options);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad()) comparison.check(i, inputs[i]);
  }
  return std::move(comparison).result();
}

}  // namespace quantrain
