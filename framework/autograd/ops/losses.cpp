#include "framework/autograd/ops/losses.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

/// The loss of one element, and its derivatives with respect to x and target.
struct Element {
  double loss, by_x, by_target;
};

class MeanLossNode : public Node {
 public:
  /// grads: gradients of x and target for grad_y = 1, computed by the forward pass.
  MeanLossNode(const char* type, Attributes attributes, std::vector<Tensor> grads)
      : type_(type), attributes_(std::move(attributes)), grads_(std::move(grads)) {}
  std::string_view type() const override { return type_; }
  Attributes attributes() const override { return attributes_; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const float factor = grad_y.item();
    std::vector<Tensor> grads(2);
    for (size_t i = 0; i < 2; ++i) {
      if (!needs_grad(i)) continue;
      grads[i] = Tensor::empty(grads_[i].shape());
      const Floats one = grads_[i].floats();
      kernels::affine_f32(grads[i].elements(), one, factor, 0.0f, grads[i].mutable_data());
    }
    return grads;
  }

 private:
  const char* type_;
  Attributes attributes_;
  std::vector<Tensor> grads_;
};

/// The mean of element(x, target) over all elements. element() computes each loss in double. The
/// losses are rounded to float32 and summed in a fixed order.
template <class Function>
Tensor mean_loss(const char* type,
                 Attributes attributes,
                 const Tensor& x,
                 const Tensor& target,
                 const Function& element) {
  const DefaultRounding rounding;
  if (!(x.shape() == target.shape()))
    throw ShapeError(type, "shapes differ: x ", x.shape(), ", target ", target.shape());
  const int64_t n = x.elements();
  if (n == 0) throw ShapeError(type, "no elements to average in shape ", x.shape());
  std::vector<Tensor> grads(2);
  float* grad_x = nullptr;
  float* grad_target = nullptr;
  if (needs_gradient({x})) grad_x = (grads[0] = Tensor::empty(x.shape())).mutable_data();
  if (needs_gradient({target})) grad_target = (grads[1] = Tensor::empty(x.shape())).mutable_data();
  Buffer<float> losses(n);
  const Floats a = x.floats();
  const Floats b = target.floats();
  const auto count = static_cast<double>(n);
  parallel_for(n, kernels::kFunctionGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Element e = element(double{a[i]}, double{b[i]});
      losses[i] = static_cast<float>(e.loss);
      if (grad_x != nullptr) grad_x[i] = static_cast<float>(e.by_x / count);
      if (grad_target != nullptr) grad_target[i] = static_cast<float>(e.by_target / count);
    }
  });
  const float loss = kernels::sum_f32(n, losses.data()) / static_cast<float>(n);
  return record<MeanLossNode>(
      Tensor::full({}, loss), {x, target}, type, std::move(attributes), std::move(grads));
}

}  // namespace

Tensor l1_loss(const Tensor& x, const Tensor& target) {
  return mean_loss("l1_loss", {}, x, target, [](double v, double t) {
    const double d = v - t;
    const double sign = d > 0.0 ? 1.0 : d < 0.0 ? -1.0 : 0.0;
    return Element{std::abs(d), sign, -sign};
  });
}

Tensor huber_loss(const Tensor& x, const Tensor& target, float delta) {
  if (!(delta > 0.0f && std::isfinite(delta)))
    throw DataError("huber_loss", "delta is ", delta, ", expected a positive, finite number");
  const double limit = delta;
  return mean_loss("huber_loss", {{"delta", limit}}, x, target, [limit](double v, double t) {
    const double d = v - t;
    const double slope = std::clamp(d, -limit, limit);
    return Element{slope * (d - 0.5 * slope), slope, -slope};
  });
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target) {
  return mean_loss("binary_cross_entropy_with_logits", {}, x, target, [](double v, double t) {
    const double loss = std::max(v, 0.0) - v * t + std::log1p(std::exp(-std::abs(v)));
    return Element{loss, 1.0 / (1.0 + std::exp(-v)) - t, -v};
  });
}

}  // namespace quantrain
