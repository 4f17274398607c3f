#include "framework/autograd/ops/batch_norm.hpp"

#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"

namespace quantrain {
namespace {

constexpr const char* kBatchNorm = "batch_norm";
constexpr const char* kRescaled = "rescaled_batch_norm";

using Channels = std::vector<float>;

// Statistics that normalise a batch: y = (x - mean) * inverse_deviation * gamma + beta.
struct Statistics {
  Channels mean;
  Channels inverse_deviation;
};

struct Gradients {
  Tensor x, gamma, beta;
  Channels sum_grad_x;  // sum(grad_y * (x - mean))
};

// With n values per channel and x^ = (x - mean) * inverse_deviation, where mean and deviation are
// those of the batch:
// grad_x = gamma * inverse_deviation * (grad_y - sum(grad_y) / n - x^ * sum(grad_y * x^) / n).
Gradients gradients(const Tensor& x,
                    const Tensor& gamma,
                    const Tensor& grad_y,
                    const Statistics& s,
                    bool batch_statistics,
                    bool wants_x) {
  const int64_t c = x.dim(-1);
  const int64_t n = c == 0 ? 0 : x.elements() / c;
  const Floats x_data = x.floats();
  const float* const grad = grad_y.data();
  const Channels& inverse = s.inverse_deviation;

  Gradients result;
  result.beta = Tensor::empty({c});
  result.gamma = Tensor::empty({c});
  result.sum_grad_x.resize(inverse.size());
  const float* const sum_grad = result.beta.data();
  kernels::column_grad_sums_f32(
      n, c, x_data, s.mean.data(), grad, result.beta.mutable_data(), result.sum_grad_x.data());
  float* const grad_gamma = result.gamma.mutable_data();
  for (size_t i = 0; i < inverse.size(); ++i) grad_gamma[i] = result.sum_grad_x[i] * inverse[i];
  if (!wants_x) return result;

  const Floats gamma_data = gamma.floats();
  Channels a(inverse.size());
  Channels b(inverse.size(), 0.0f);
  Channels d(inverse.size(), 0.0f);
  for (size_t i = 0; i < inverse.size(); ++i) {
    a[i] = gamma_data[static_cast<int64_t>(i)] * inverse[i];
    if (!batch_statistics) continue;
    b[i] = -a[i] * inverse[i] * inverse[i] * (result.sum_grad_x[i] / static_cast<float>(n));
    d[i] = -a[i] * (sum_grad[i] / static_cast<float>(n));
  }
  result.x = TensorAccess::overwritable(grad_y);
  float* const out = result.x.mutable_data();
  kernels::batch_norm_backward_f32(
      n, c, x_data, s.mean.data(), grad, a.data(), b.data(), d.data(), out);
  return result;
}

class BatchNormNode : public Node {
 public:
  BatchNormNode(Statistics statistics, const BatchNormOptions& options)
      : statistics_(std::move(statistics)), options_(options) {}
  std::string_view type() const override { return kBatchNorm; }
  Attributes attributes() const override {
    return {{"epsilon", double{options_.epsilon}}, {"training", int64_t{options_.training}}};
  }
  QuantizationTraits traits() const override {
    return {.closes_range = true,
            .is_batch_norm = true,
            .takes_constants = true,
            .takes_data = false,
            .layer = "BatchNorm1d or BatchNorm2d"};
  }
  bool reads_input(size_t i) const override { return i < 2; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Gradients g =
        gradients(input(0), input(1), grad_y, statistics_, options_.training, needs_grad(0));
    std::vector<Tensor> grads(inputs().size());
    grads[0] = g.x;
    if (needs_grad(1)) grads[1] = g.gamma;
    if (needs_grad(2)) grads[2] = g.beta;
    return grads;
  }

 private:
  Statistics statistics_;
  BatchNormOptions options_;
};

// Inputs x, gamma, beta, factor, shift.
class RescaledBatchNormNode : public Node {
 public:
  RescaledBatchNormNode(Tensor x, Statistics statistics, float epsilon)
      : x_(std::move(x)), statistics_(std::move(statistics)), epsilon_(epsilon) {}
  std::string_view type() const override { return kRescaled; }
  Attributes attributes() const override { return {{"epsilon", double{epsilon_}}}; }
  // backward reads x_, which shares the memory of input 0 only if input 0 holds floats. Codes and
  // accumulators were converted to new floats.
  bool reads_input(size_t i) const override {
    return i == 1 || i == 3 || (i == 0 && input(0).kind() == ValueKind::kFloat);
  }

  // For a factor f, inverse_deviation = 1 / (f * sqrt(variance / f^2 + epsilon)), so that
  // d inverse_deviation / df = -epsilon * f * inverse_deviation^3.
  std::vector<Tensor> backward(Tensor grad_y) override {
    Gradients g = gradients(x_, input(1), grad_y, statistics_, true, needs_grad(0));
    std::vector<Tensor> grads(5);
    grads[0] = g.x;
    if (needs_grad(1)) grads[1] = g.gamma;
    if (needs_grad(2)) grads[2] = g.beta;
    if (needs_grad(3)) {
      grads[3] = Tensor::empty(input(3).shape());
      float* const out = grads[3].mutable_data();
      const Floats gamma = input(1).floats();
      const Floats factor = input(3).floats();
      for (size_t i = 0; i < g.sum_grad_x.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        const float inverse = statistics_.inverse_deviation[i];
        out[i] = -gamma[at] * epsilon_ * factor[at] * inverse * inverse * inverse * g.sum_grad_x[i];
      }
    }
    if (needs_grad(4)) grads[4] = Tensor::zeros(input(4).shape());
    return grads;
  }

 private:
  Tensor x_;  // as floats, so that accumulators are not converted again
  Statistics statistics_;
  float epsilon_;
};

void check_batch_norm(
    const char* where,
    const Tensor& x,
    const std::initializer_list<std::pair<const char*, const Tensor*>>& per_channel,
    const BatchNormOptions& options) {
  if (x.rank() < 2) throw ShapeError(where, "x must be [N, ..., C], got ", x.shape());
  for (const auto& [name, tensor] : per_channel) {
    if (!(tensor->shape() == Shape{x.dim(-1)})) {
      throw ShapeError(where, name, " has shape ", tensor->shape(), ", x ", x.shape());
    }
  }
  if (!(options.epsilon > 0.0f) || !std::isfinite(options.epsilon)) {
    throw DataError(where, "epsilon must be positive and finite, got ", options.epsilon);
  }
  if (!(options.momentum >= 0.0f && options.momentum <= 1.0f)) {
    throw DataError(where, "momentum must lie in [0, 1], got ", options.momentum);
  }
  if (options.training && x.dim(-1) > 0 && x.elements() / x.dim(-1) < 2) {
    throw ShapeError(
        where, "batch statistics need more than one value per channel, got shape ", x.shape());
  }
}

void update(Tensor& running, const Channels& batch, float momentum) {
  float* const r = running.mutable_data();
  for (size_t i = 0; i < batch.size(); ++i) r[i] = (1.0f - momentum) * r[i] + momentum * batch[i];
}

struct Running {
  Tensor& mean;
  Tensor& variance;
};

// Normalising x with these statistics gives the result of batch_norm(x / factor + shift). factor
// and shift may be undefined. Also updates the running statistics.
Statistics batch_statistics(const Tensor& x,
                            const Tensor& factor,
                            const Tensor& shift,
                            Running running,
                            const BatchNormOptions& options) {
  const int64_t c = x.dim(-1);
  const int64_t n = c == 0 ? 0 : x.elements() / c;
  Statistics s{Channels(static_cast<size_t>(c)), Channels(static_cast<size_t>(c))};
  Channels mean(s.mean.size());
  Channels variance(s.mean.size());
  const Floats x_floats = x.floats();
  kernels::column_moments_f32(n, c, x_floats, s.mean.data(), variance.data());
  const float* const factors = factor.defined() ? factor.data() : nullptr;
  const float* const shifts = shift.defined() ? shift.data() : nullptr;
  for (size_t i = 0; i < variance.size(); ++i) {
    const float f = factors != nullptr ? factors[i] : 1.0f;
    mean[i] = s.mean[i] / f + (shifts != nullptr ? shifts[i] : 0.0f);
    variance[i] /= f * f;
    s.inverse_deviation[i] = 1.0f / (f * std::sqrt(variance[i] + options.epsilon));
    variance[i] *= static_cast<float>(n) / static_cast<float>(n - 1);
  }
  update(running.mean, mean, options.momentum);
  update(running.variance, variance, options.momentum);
  return s;
}

Statistics running_statistics(const Tensor& mean,
                              const Tensor& variance,
                              const BatchNormOptions& options) {
  const float* const means = mean.data();
  const float* const variances = variance.data();
  Statistics s{Channels(means, means + mean.elements()),
               Channels(static_cast<size_t>(variance.elements()))};
  for (size_t i = 0; i < s.inverse_deviation.size(); ++i) {
    s.inverse_deviation[i] = 1.0f / std::sqrt(variances[i] + options.epsilon);
  }
  return s;
}

void check_running(const char* where, const Tensor& mean, const Tensor& variance) {
  if (mean.requires_grad() || variance.requires_grad()) {
    throw GraphError(
        where, "running mean and variance get no gradient: call set_requires_grad(false) on them");
  }
}

Tensor normalise(const Tensor& x, const Statistics& s, const Tensor& gamma, const Tensor& beta) {
  const int64_t c = x.dim(-1);
  const float* const gammas = gamma.data();
  const float* const betas = beta.data();
  Channels scale(s.mean.size());
  Channels shift(s.mean.size());
  for (size_t i = 0; i < scale.size(); ++i) {
    scale[i] = gammas[i] * s.inverse_deviation[i];
    shift[i] = betas[i] - s.mean[i] * scale[i];
  }
  Tensor y = Tensor::empty(x.shape());
  const Floats x_floats = x.floats();
  kernels::column_affine_f32(
      c == 0 ? 0 : x.elements() / c, c, x_floats, scale.data(), shift.data(), y.mutable_data());
  return y;
}

// With running statistics, batch norm is a function of the codes of each channel. Returns this
// function. Returns null in three cases: in training, if x holds no activation codes, and if x has
// no channels.
// docs/quantization.md (24)
std::shared_ptr<CodeFunction> of_codes(const Tensor& x,
                                       const Tensor& gamma,
                                       const Tensor& beta,
                                       const Tensor& mean,
                                       const Tensor& variance,
                                       const BatchNormOptions& options) {
  std::shared_ptr<const Codes> codes = activation_codes(x);
  if (options.training || codes == nullptr || x.dim(-1) == 0) return nullptr;
  const Floats gammas = gamma.floats();
  const Floats betas = beta.floats();
  std::vector<integer::CodeValues> values;
  for (int64_t c = 0; c < x.dim(-1); ++c) {
    const double deviation =
        std::sqrt(static_cast<double>(variance.data()[c]) + static_cast<double>(options.epsilon));
    const double factor = static_cast<double>(gammas[c]) / deviation;
    const double m = mean.data()[c];
    const double b = betas[c];
    values.push_back(
        integer::code_values([&](double v) { return factor * (v - m) + b; }, codes->params));
  }
  return std::make_shared<CodeFunction>(kBatchNorm, x.shape(), std::move(codes), std::move(values));
}

}  // namespace

Tensor batch_norm(const Tensor& x,
                  const Tensor& gamma,
                  const Tensor& beta,
                  Tensor running_mean,
                  Tensor running_variance,
                  const BatchNormOptions& options) {
  check_batch_norm(kBatchNorm,
                   x,
                   {{"gamma", &gamma},
                    {"beta", &beta},
                    {"running mean", &running_mean},
                    {"running variance", &running_variance}},
                   options);
  check_running(kBatchNorm, running_mean, running_variance);
  Statistics s =
      options.training
          ? batch_statistics(x, Tensor(), Tensor(), {running_mean, running_variance}, options)
          : running_statistics(running_mean, running_variance, options);
  auto waiting = of_codes(x, gamma, beta, running_mean, running_variance, options);
  Tensor y = waiting != nullptr ? TensorAccess::from_accumulators(x.shape(), std::move(waiting))
                                : normalise(x, s, gamma, beta);
  std::vector<Tensor> inputs{x, gamma, beta};
  if (!options.training) inputs.insert(inputs.end(), {running_mean, running_variance});
  return record<BatchNormNode>(std::move(y), std::move(inputs), std::move(s), options);
}

Tensor rescaled_batch_norm(const Tensor& x,
                           const Tensor& factor,
                           const Tensor& shift,
                           const Tensor& gamma,
                           const Tensor& beta,
                           Tensor running_mean,
                           Tensor running_variance,
                           const BatchNormOptions& options) {
  check_batch_norm(kRescaled,
                   x,
                   {{"factor", &factor},
                    {"shift", shift.defined() ? &shift : &factor},
                    {"gamma", &gamma},
                    {"beta", &beta},
                    {"running mean", &running_mean},
                    {"running variance", &running_variance}},
                   options);
  check_running(kRescaled, running_mean, running_variance);
  if (!options.training)
    throw GraphError(kRescaled, "only batch statistics cancel the factor: set the option training");
  const Tensor values = TensorAccess::as_floats(x);
  Statistics s = batch_statistics(values, factor, shift, {running_mean, running_variance}, options);
  Tensor y = normalise(values, s, gamma, beta);
  return record<RescaledBatchNormNode>(
      std::move(y), {x, gamma, beta, factor, shift}, values, std::move(s), options.epsilon);
}

}  // namespace quantrain
