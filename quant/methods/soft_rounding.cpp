#include "quant/methods/soft_rounding.hpp"

#include <algorithm>
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/mse_loss.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain::quant {
namespace {

constexpr int64_t kElements = 1 << 12;  // of a block: a few operations each
constexpr float kStretch = kStretchHigh - kStretchLow;
constexpr int kRoots = 4;  // the power takes 2^kRoots-th roots

std::vector<float> sigmoids(int64_t n, const float* v) {
  std::vector<float> s(static_cast<size_t>(n));
  kernels::sigmoid_f32(n, v, s.data());
  return s;
}

float rectified(float sigmoid) { return std::clamp(sigmoid * kStretch + kStretchLow, 0.0f, 1.0f); }

// h'(v); 0 where h is clipped.
float slope(float sigmoid) {
  const float h = sigmoid * kStretch + kStretchLow;
  return h > 0.0f && h < 1.0f ? kStretch * sigmoid * (1.0f - sigmoid) : 0.0f;
}

// x^(sixteenths / 16) for x in [0, 1].
double power(double x, int64_t sixteenths) {
  for (int i = 0; i < kRoots; ++i) x = std::sqrt(x);
  double result = 1.0;
  for (; sixteenths > 0; sixteenths /= 2) {
    if (sixteenths % 2 == 1) result *= x;
    x *= x;
  }
  return result;
}

class SoftQuantizeNode : public Node {
 public:
  explicit SoftQuantizeNode(std::vector<float> slopes) : slopes_(std::move(slopes)) {}
  std::string_view type() const override { return "soft_quantize"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad = TensorAccess::overwritable(grad_y);
    const Floats g = grad_y.floats();
    kernels::mul_f32(grad.elements(), g, slopes_.data(), grad.mutable_data());
    return {std::move(grad)};
  }

 private:
  std::vector<float> slopes_;  // dy / dv
};

class RoundingRegularizerNode : public Node {
 public:
  explicit RoundingRegularizerNode(Tensor slopes) : slopes_(std::move(slopes)) {}
  std::string_view type() const override { return "rounding_regularizer"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad = Tensor::empty(slopes_.shape());
    kernels::affine_f32(grad.elements(), slopes_.data(), grad_y.item(), 0.0f, grad.mutable_data());
    return {std::move(grad)};
  }

 private:
  Tensor slopes_;
};

}  // namespace

std::vector<float> rectified_sigmoid(std::span<const float> v) {
  std::vector<float> h = sigmoids(std::ssize(v), v.data());
  std::transform(h.begin(), h.end(), h.begin(), rectified);
  return h;
}

// By bisection, which needs no logarithm: those of different machines differ in the last bit.
std::vector<float> rounding_logits(std::span<const float> share) {
  constexpr float kFar = 3.0f;  // h(-3) = 0 and h(3) = 1
  constexpr int kSteps = 24;
  std::vector<float> low(share.size(), -kFar);
  std::vector<float> high(share.size(), kFar);
  std::vector<float> middle(share.size(), 0.0f);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> h = rectified_sigmoid(middle);
    for (size_t i = 0; i < share.size(); ++i) {
      (h[i] < share[i] ? low : high)[i] = middle[i];
      middle[i] = 0.5f * (low[i] + high[i]);
    }
  }
  return middle;
}

Tensor soft_quantize(const Tensor& v, const std::shared_ptr<const SoftWeights>& weights) {
  const int64_t n = v.elements();
  const auto channels = static_cast<int64_t>(weights->params.scale.size());
  const int64_t inner = n / std::max<int64_t>(channels, 1);
  const auto qmin = static_cast<float>(weights->params.type.qmin());
  const auto qmax = static_cast<float>(weights->params.type.qmax());
  std::vector<float> slopes = sigmoids(n, v.data());
  Tensor y = Tensor::empty(v.shape());
  float* const out = y.mutable_data();
  parallel_for(n, kElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const float scale = weights->params.scale[static_cast<size_t>(i / inner)];
      const float code = weights->floor[at] + rectified(slopes[at]);
      out[i] = scale * std::clamp(code, qmin, qmax);
      slopes[at] = code >= qmin && code <= qmax ? scale * slope(slopes[at]) : 0.0f;
    }
  });
  return record<SoftQuantizeNode>(std::move(y), {v}, std::move(slopes));
}

Tensor rounding_regularizer(const Tensor& v, float beta) {
  if (!(beta >= 1.0f && beta <= 64.0f))
    throw QuantError("rounding_regularizer", "beta is in [1, 64], got ", beta);
  const int64_t n = v.elements();
  const auto sixteenths = static_cast<int64_t>(half_even(beta * 16.0f));
  const double exponent = static_cast<double>(sixteenths) / 16.0;
  const std::vector<float> s = sigmoids(n, v.data());
  std::vector<double> terms(static_cast<size_t>(n));
  Tensor slopes = Tensor::empty(v.shape());
  float* const out = slopes.mutable_data();
  parallel_for(n, kElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const double x = 2.0 * static_cast<double>(rectified(s[at])) - 1.0;
      const double before = power(std::abs(x), sixteenths - 16);  // |x|^(beta - 1)
      terms[at] = 1.0 - before * std::abs(x);
      out[i] = static_cast<float>(-2.0 * exponent * (x < 0.0 ? -before : before) *
                                  static_cast<double>(slope(s[at])));
    }
  });
  double sum = 0.0;
  for (const double term : terms) sum += term;
  return record<RoundingRegularizerNode>(
      Tensor::full({}, static_cast<float>(sum)), {v}, std::move(slopes));
}

Tensor reconstruction_loss(const Tensor& y, const Tensor& target) {
  const auto channels = static_cast<float>(y.rank() == 0 ? 1 : y.dim(y.rank() - 1));
  return mul(mse_loss(y, target), Tensor::full({1}, channels));
}

float annealed_beta(int64_t step, int64_t steps, int64_t warm_up, float first, float last) {
  if (step < warm_up || warm_up >= steps) return first;
  const auto gone = static_cast<float>(step - warm_up) / static_cast<float>(steps - warm_up);
  return first + (last - first) * gone;
}

}  // namespace quantrain::quant
