#include "framework/autograd/ops/batch_norm.hpp"

#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/batch_norm_pass.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/relu.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"

namespace quantrain {
namespace {

constexpr const char* kBatchNorm = "batch_norm";
constexpr const char* kRescaled = "rescaled_batch_norm";

using detail::batch_statistics;
using detail::Channels;
using detail::Mask;
using detail::Moments;
using detail::moments;
using detail::Pass;
using detail::running_statistics;
using detail::scales_of_sums;
using detail::Statistics;
using detail::values_per_channel;

struct Gradients {
  Tensor x, gamma, beta;
  Channels sum_grad_x;  // sum(grad_y * (x - mean))
};

// With n values per channel and x^ = (x - mean) * inverse_deviation, where mean and deviation are
// those of the batch:
// grad_x = gamma * inverse_deviation * (grad_y - sum(grad_y) / n - x^ * sum(grad_y * x^) / n).
Gradients gradients(const Tensor& x,
                    const Tensor& gamma,
                    Tensor grad_y,
                    const Statistics& s,
                    const Mask& mask,
                    bool batch_statistics,
                    bool wants_x) {
  const int64_t c = x.dim(-1);
  const uint8_t* bits = mask.data();
  if (bits != nullptr && c % 8 != 0) {
    grad_y = masked(grad_y, mask);
    bits = nullptr;
  }
  const int64_t n = values_per_channel(x);
  const Floats x_data = x.floats();
  const float* const grad = grad_y.data();
  const Channels& inverse = s.inverse_deviation;

  Gradients result;
  result.beta = Tensor::empty({c});
  result.gamma = Tensor::empty({c});
  result.sum_grad_x.resize(inverse.size());
  const float* const sum_grad = result.beta.data();
  kernels::column_grad_sums_f32(n,
                                c,
                                x_data,
                                s.mean.data(),
                                grad,
                                bits,
                                result.beta.mutable_data(),
                                result.sum_grad_x.data());
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
  kernels::batch_norm_backward_f32(n,
                                   c,
                                   {.x = x_data,
                                    .grad_y = grad,
                                    .mask = bits,
                                    .mean = s.mean.data(),
                                    .a = a.data(),
                                    .b = b.data(),
                                    .d = d.data(),
                                    .grad_x = out});
  return result;
}

class BatchNormNode : public Node {
 public:
  BatchNormNode(Statistics statistics, Mask mask, const BatchNormOptions& options)
      : statistics_(std::move(statistics)),
        mask_(std::move(mask)),
        epsilon_(options.epsilon),
        training_(options.training) {}
  std::string_view type() const override { return kBatchNorm; }
  Attributes attributes() const override {
    return {{"epsilon", double{epsilon_}}, {"training", int64_t{training_}}};
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
    Gradients g = gradients(
        input(0), input(1), std::move(grad_y), statistics_, mask_, training_, needs_grad(0));
    std::vector<Tensor> grads(inputs().size());
    grads[0] = g.x;
    if (needs_grad(1)) grads[1] = g.gamma;
    if (needs_grad(2)) grads[2] = g.beta;
    return grads;
  }

 private:
  Statistics statistics_;
  Mask mask_;
  float epsilon_;
  bool training_;
};

// Inputs x, gamma, beta, factor, shift.
class RescaledBatchNormNode : public Node {
 public:
  RescaledBatchNormNode(Tensor x, Statistics statistics, Mask mask, float epsilon)
      : x_(std::move(x)),
        statistics_(std::move(statistics)),
        mask_(std::move(mask)),
        epsilon_(epsilon) {}
  std::string_view type() const override { return kRescaled; }
  Attributes attributes() const override { return {{"epsilon", double{epsilon_}}}; }
  // backward reads x_, which shares the memory of input 0 only if input 0 holds floats. Codes and
  // waiting results were converted to new floats.
  bool reads_input(size_t i) const override {
    return i == 1 || i == 3 || (i == 0 && input(0).kind() == ValueKind::kFloat);
  }

  // For a factor f, inverse_deviation = 1 / (f * sqrt(variance / f^2 + epsilon)), so that
  // d inverse_deviation / df = -epsilon * f * inverse_deviation^3.
  std::vector<Tensor> backward(Tensor grad_y) override {
    Gradients g =
        gradients(x_, input(1), std::move(grad_y), statistics_, mask_, true, needs_grad(0));
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
  Tensor x_;  // as floats, so that a waiting result is not converted again
  Statistics statistics_;
  Mask mask_;
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
  if (options.quantize != nullptr && !options.training)
    throw GraphError(where, "only a batch norm with batch statistics quantizes its result");
  if (options.training && x.dim(-1) > 0 && x.elements() / x.dim(-1) < 2) {
    throw ShapeError(Scope::path().empty() ? where : Scope::path(),
                     "batch statistics need more than one value per channel, got shape ",
                     x.shape(),
                     ": call eval() before the network predicts; if a data set leaves one sample "
                     "for the last batch, set LoaderOptions::drop_last or merge_last");
  }
}

void check_running(const char* where, const Tensor& mean, const Tensor& variance) {
  if (mean.requires_grad() || variance.requires_grad()) {
    throw GraphError(
        where, "running mean and variance get no gradient: call set_requires_grad(false) on them");
  }
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

Tensor batch_norm(Tensor x,
                  const Tensor& gamma,
                  const Tensor& beta,
                  Tensor running_mean,
                  Tensor running_variance,
                  const BatchNormOptions& options) {
  if (keeps_values() && options.activation != Activation::kNone && !options.quantize) {
    BatchNormOptions alone = options;  // a recording shows two operations
    alone.activation = Activation::kNone;
    Tensor y = batch_norm(std::move(x), gamma, beta, running_mean, running_variance, alone);
    return activate(std::move(y), options.activation);
  }
  check_batch_norm(kBatchNorm,
                   x,
                   {{"gamma", &gamma},
                    {"beta", &beta},
                    {"running mean", &running_mean},
                    {"running variance", &running_variance}},
                   options);
  check_running(kBatchNorm, running_mean, running_variance);
  const Moments of_batch =
      options.training ? moments(x, {}, options.quantize != nullptr) : Moments{};
  Statistics s = options.training ? batch_statistics(of_batch,
                                                     values_per_channel(x),
                                                     Tensor(),
                                                     Tensor(),
                                                     {running_mean, running_variance},
                                                     options)
                                  : running_statistics(running_mean, running_variance, options);
  Mask mask;
  Tensor y;
  if (auto waiting = of_codes(x, gamma, beta, running_mean, running_variance, options)) {
    y = TensorAccess::from_waiting(x.shape(), std::move(waiting), options.activation);
    if (options.activation != Activation::kNone && needs_gradient({x, gamma, beta})) {
      mask = Mask((x.elements() + 7) / 8);
      TensorAccess::waiting(y)->activation_mask(x.elements(), options.activation, mask.data());
    }
  } else {
    const bool masks = needs_gradient({x, gamma, beta});
    const bool in_place = TensorAccess::is_sole(x) && !masks && !keeps_values();
    y = Pass(s, gamma, beta, options).run(x, of_batch.range, in_place, masks ? &mask : nullptr);
  }
  std::vector<Tensor> inputs{std::move(x), gamma, beta};
  if (!options.training) inputs.insert(inputs.end(), {running_mean, running_variance});
  return record<BatchNormNode>(
      std::move(y), std::move(inputs), std::move(s), std::move(mask), options);
}

Tensor rescaled_batch_norm(Tensor x,
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
  // If nobody else reads integer sums, the floats take their memory.
  std::vector<double> scale;
  if (!keeps_values()) scale = scales_of_sums(x);
  Tensor values;
  if (!scale.empty()) values = TensorAccess::take_sums(x);
  if (!values.defined()) {
    scale.clear();
    values = TensorAccess::as_floats(x);
  }
  const Moments of_batch = moments(values, scale, options.quantize != nullptr);
  Statistics s = batch_statistics(
      of_batch, values_per_channel(x), factor, shift, {running_mean, running_variance}, options);
  std::vector<Tensor> inputs{std::move(x), gamma, beta, factor, shift};
  const bool in_place = !should_record(inputs) && TensorAccess::is_sole(values);
  Mask mask;
  Tensor y = Pass(s, gamma, beta, options)
                 .run(values, of_batch.range, in_place, needs_gradient(inputs) ? &mask : nullptr);
  return record<RescaledBatchNormNode>(std::move(y),
                                       std::move(inputs),
                                       std::move(values),
                                       std::move(s),
                                       std::move(mask),
                                       options.epsilon);
}

}  // namespace quantrain
