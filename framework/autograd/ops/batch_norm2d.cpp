#include "framework/autograd/ops/batch_norm2d.hpp"

#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "batch_norm2d";

using Channels = std::vector<float>;

// What a batch is normalised with.
struct Statistics {
  Channels mean;
  Channels inverse_deviation;  // 1 / sqrt(variance + epsilon)
};

class BatchNorm2dNode : public Node {
 public:
  BatchNorm2dNode(Statistics statistics, const BatchNorm2dOptions& options)
      : statistics_(std::move(statistics)), options_(options) {}
  std::string_view type() const override { return kWhere; }
  Attributes attributes() const override {
    return {{"epsilon", double{options_.epsilon}}, {"training", int64_t{options_.training}}};
  }

  bool reads_input(size_t i) const override { return i < 2; }

  // With n values per channel and x^ = (x - mean) * inverse_deviation, in training:
  // grad_x = gamma * inverse_deviation * (grad_y - sum(grad_y) / n - x^ * sum(grad_y * x^) / n).
  std::vector<Tensor> backward(const Tensor& grad_y) override {
    const Tensor& x = input(0);
    const int64_t c = x.dim(-1);
    const int64_t n = c == 0 ? 0 : x.elements() / c;
    const Floats x_data = x.floats();
    const Floats grad = grad_y.floats();
    const Channels& inverse = statistics_.inverse_deviation;

    Tensor grad_beta = Tensor::empty({c});
    Tensor grad_gamma = Tensor::empty({c});
    float* const sum_grad = grad_beta.mutable_data();
    float* const sum_grad_x = grad_gamma.mutable_data();
    kernels::column_grad_sums_f32(
        n, c, x_data, statistics_.mean.data(), grad, sum_grad, sum_grad_x);

    Tensor grad_x;
    if (needs_grad(0)) {
      grad_x = Tensor::empty(x.shape());
      const Floats gamma = input(1).floats();
      Channels a(inverse.size());
      Channels b(inverse.size(), 0.0f);
      Channels d(inverse.size(), 0.0f);
      for (size_t i = 0; i < inverse.size(); ++i) {
        a[i] = gamma.data()[i] * inverse[i];
        if (!options_.training) continue;
        b[i] = -a[i] * inverse[i] * inverse[i] * (sum_grad_x[i] / static_cast<float>(n));
        d[i] = -a[i] * (sum_grad[i] / static_cast<float>(n));
      }
      kernels::batch_norm_backward_f32(n,
                                       c,
                                       x_data,
                                       statistics_.mean.data(),
                                       grad,
                                       a.data(),
                                       b.data(),
                                       d.data(),
                                       grad_x.mutable_data());
    }
    for (size_t i = 0; i < inverse.size(); ++i) sum_grad_x[i] *= inverse[i];
    std::vector<Tensor> grads(inputs().size());
    grads[0] = grad_x;
    if (needs_grad(1)) grads[1] = grad_gamma;
    if (needs_grad(2)) grads[2] = grad_beta;
    return grads;
  }

 private:
  Statistics statistics_;
  BatchNorm2dOptions options_;
};

void check(const Tensor& x,
           const std::initializer_list<std::pair<const char*, const Tensor*>>& per_channel,
           const BatchNorm2dOptions& options) {
  if (x.rank() != 4) throw ShapeError(kWhere, "x must be [N, H, W, C], got ", x.shape());
  for (const auto& [name, tensor] : per_channel) {
    if (!(tensor->shape() == Shape{x.dim(3)})) {
      throw ShapeError(kWhere, name, " has shape ", tensor->shape(), ", x ", x.shape());
    }
  }
  if (!(options.epsilon > 0.0f) || !std::isfinite(options.epsilon)) {
    throw DataError(kWhere, "epsilon must be positive and finite, got ", options.epsilon);
  }
  if (!(options.momentum >= 0.0f && options.momentum <= 1.0f)) {
    throw DataError(kWhere, "momentum must lie in [0, 1], got ", options.momentum);
  }
  if (options.training && x.dim(3) > 0 && x.elements() / x.dim(3) < 2) {
    throw ShapeError(
        kWhere, "batch statistics need more than one value per channel, got shape ", x.shape());
  }
}

void update(Tensor& running, const Channels& batch, float momentum) {
  float* const r = running.mutable_data();
  for (size_t i = 0; i < batch.size(); ++i) r[i] = (1.0f - momentum) * r[i] + momentum * batch[i];
}

// Also updates the running statistics.
Statistics batch_statistics(const Tensor& x,
                            Tensor& running_mean,
                            Tensor& running_variance,
                            const BatchNorm2dOptions& options) {
  const int64_t c = x.dim(3);
  const int64_t n = c == 0 ? 0 : x.elements() / c;
  Statistics s{Channels(static_cast<size_t>(c)), Channels(static_cast<size_t>(c))};
  Channels variance(static_cast<size_t>(c));
  kernels::column_moments_f32(n, c, x.floats(), s.mean.data(), variance.data());
  for (size_t i = 0; i < variance.size(); ++i) {
    s.inverse_deviation[i] = 1.0f / std::sqrt(variance[i] + options.epsilon);
    variance[i] *= static_cast<float>(n) / static_cast<float>(n - 1);
  }
  update(running_mean, s.mean, options.momentum);
  update(running_variance, variance, options.momentum);
  return s;
}

Statistics running_statistics(const Tensor& mean,
                              const Tensor& variance,
                              const BatchNorm2dOptions& options) {
  Statistics s;
  s.mean.assign(mean.data(), mean.data() + mean.elements());
  for (int64_t i = 0; i < variance.elements(); ++i) {
    s.inverse_deviation.push_back(1.0f / std::sqrt(variance.data()[i] + options.epsilon));
  }
  return s;
}

}  // namespace

Tensor batch_norm2d(const Tensor& x,
                    const Tensor& gamma,
                    const Tensor& beta,
                    Tensor running_mean,
                    Tensor running_variance,
                    const BatchNorm2dOptions& options) {
  check(x,
        {{"gamma", &gamma},
         {"beta", &beta},
         {"running mean", &running_mean},
         {"running variance", &running_variance}},
        options);
  if (running_mean.requires_grad() || running_variance.requires_grad()) {
    throw GraphError(kWhere, "running statistics get no gradient, but require one");
  }
  Statistics s = options.training ? batch_statistics(x, running_mean, running_variance, options)
                                  : running_statistics(running_mean, running_variance, options);
  const int64_t c = x.dim(3);
  Channels scale(s.mean.size());
  Channels shift(s.mean.size());
  for (size_t i = 0; i < scale.size(); ++i) {
    scale[i] = gamma.data()[i] * s.inverse_deviation[i];
    shift[i] = beta.data()[i] - s.mean[i] * scale[i];
  }
  Tensor y = Tensor::empty(x.shape());
  kernels::column_affine_f32(
      c == 0 ? 0 : x.elements() / c, c, x.floats(), scale.data(), shift.data(), y.mutable_data());
  std::vector<Tensor> inputs{x, gamma, beta};
  if (!options.training) inputs.insert(inputs.end(), {running_mean, running_variance});
  return record<BatchNorm2dNode>(y, std::move(inputs), std::move(s), options);
}

}  // namespace quantrain
