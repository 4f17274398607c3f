#include "framework/autograd/ops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/softmax.hpp"

namespace quantrain {
namespace {

constexpr const char* kCrossEntropy = "cross_entropy";

class CrossEntropyNode : public Node {
 public:
  // grad_logits is the gradient for grad_y = 1. The forward pass computes it along with the loss.
  explicit CrossEntropyNode(Tensor grad_logits, float label_smoothing = 0.0f)
      : grad_logits_(std::move(grad_logits)), label_smoothing_(label_smoothing) {}
  std::string_view type() const override { return kCrossEntropy; }
  Attributes attributes() const override { return {{"label_smoothing", double{label_smoothing_}}}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const float factor = grad_y.item();
    if (factor == 1.0f) return {grad_logits_};
    Tensor grad = Tensor::empty(grad_logits_.shape());
    const Floats grad_logits_floats = grad_logits_.floats();
    kernels::affine_f32(grad.elements(), grad_logits_floats, factor, 0.0f, grad.mutable_data());
    return {grad};
  }

 private:
  Tensor grad_logits_;
  float label_smoothing_;
};

void check_logits(const Shape& logits, std::span<const int32_t> labels) {
  if (logits.rank() != 2) throw ShapeError(kCrossEntropy, "logits must be [N, C], got ", logits);
  const int64_t n = logits[0];
  if (n == 0) throw ShapeError(kCrossEntropy, "the batch is empty: logits ", logits);
  if (static_cast<int64_t>(labels.size()) != n) {
    throw ShapeError(kCrossEntropy, labels.size(), " labels for logits ", logits);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= logits[1]) {
      throw DataError(
          kCrossEntropy, "label ", labels[i], " of sample ", i, " is outside [0, ", logits[1], ")");
    }
  }
}

void check_class_weights(int64_t classes, const CrossEntropyOptions& options) {
  const float smoothing = options.label_smoothing;
  const std::vector<float>& weights = options.class_weights;
  if (!(smoothing >= 0.0f && smoothing <= 1.0f))
    throw DataError(kCrossEntropy, "label_smoothing must lie in [0, 1], got ", smoothing);
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != classes)
    throw ShapeError(kCrossEntropy, weights.size(), " class weights for ", classes, " classes");
  for (size_t c = 0; c < weights.size(); ++c) {
    if (!(weights[c] >= 0.0f && std::isfinite(weights[c]))) {
      throw DataError(kCrossEntropy,
                      "the weight of class ",
                      c,
                      " is ",
                      weights[c],
                      ", expected a finite value >= 0");
    }
  }
}

/// y = sum over n and c of -target(n, c) * log softmax(logits[n, :])[c].
template <class Target>
Tensor of_targets(const Tensor& logits, const Target& target, float label_smoothing) {
  const int64_t rows = logits.dim(0);
  const int64_t classes = logits.dim(1);
  const Floats x = logits.floats();
  Tensor grad_logits;
  float* grad = nullptr;
  if (needs_gradient({logits})) {
    grad_logits = Tensor::empty(logits.shape());
    grad = grad_logits.mutable_data();
    kernels::softmax_f32(rows, classes, false, x, grad);
  }
  Buffer<float> log_p(logits.elements());
  kernels::softmax_f32(rows, classes, true, x, log_p.data());
  Buffer<float> losses(rows);
  parallel_for(
      rows, kernels::row_grain(classes, kernels::kFunctionGrain), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = row * classes;
          double loss = 0.0;
          double targets = 0.0;
          for (int64_t c = 0; c < classes; ++c) {
            const double t = target(row, c);
            loss -= t * double{log_p[first + c]};
            targets += t;
          }
          losses[row] = static_cast<float>(loss);
          for (int64_t c = 0; grad != nullptr && c < classes; ++c) {
            grad[first + c] =
                static_cast<float>(double{grad[first + c]} * targets - target(row, c));
          }
        }
      });
  return record<CrossEntropyNode>(Tensor::full({}, kernels::sum_f32(rows, losses.data())),
                                  {logits},
                                  grad_logits,
                                  label_smoothing);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> labels) {
  const DefaultRounding rounding;
  check_logits(logits.shape(), labels);
  Tensor grad_logits;
  if (needs_gradient({logits})) grad_logits = Tensor::empty(logits.shape());
  const Floats logits_floats = logits.floats();
  const float loss =
      kernels::cross_entropy_f32(logits.dim(0),
                                 logits.dim(1),
                                 logits_floats,
                                 labels.data(),
                                 grad_logits.defined() ? grad_logits.mutable_data() : nullptr);
  return record<CrossEntropyNode>(Tensor::full({}, loss), {logits}, grad_logits);
}

Tensor cross_entropy(const Tensor& logits,
                     std::span<const int32_t> labels,
                     const CrossEntropyOptions& options) {
  const DefaultRounding rounding;
  check_logits(logits.shape(), labels);
  const int64_t classes = logits.dim(1);
  check_class_weights(classes, options);
  if (options.label_smoothing == 0.0f && options.class_weights.empty())
    return cross_entropy(logits, labels);
  const std::vector<float> ones(static_cast<size_t>(classes), 1.0f);
  const float* const w = options.class_weights.empty() ? ones.data() : options.class_weights.data();
  double norm = 0.0;
  for (const int32_t label : labels) norm += double{w[label]};
  if (norm == 0.0) throw DataError(kCrossEntropy, "the class weights of all labels are 0");
  const double smoothing = options.label_smoothing;
  const double share = smoothing / static_cast<double>(classes);
  const auto target = [&](int64_t row, int64_t c) {
    const bool is_label = c == labels[static_cast<size_t>(row)];
    return double{w[c]} * ((is_label ? 1.0 - smoothing : 0.0) + share) / norm;
  };
  return of_targets(logits, target, options.label_smoothing);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  const DefaultRounding rounding;
  if (logits.rank() != 2 || !(targets.shape() == logits.shape())) {
    throw ShapeError(kCrossEntropy,
                     "logits and targets must be [N, C], got ",
                     logits.shape(),
                     " and ",
                     targets.shape());
  }
  if (logits.elements() == 0)
    throw ShapeError(kCrossEntropy, "there is nothing to compare: logits ", logits.shape());
  const Floats t = targets.floats();
  for (int64_t i = 0; i < targets.elements(); ++i) {
    if (!(t[i] >= 0.0f && std::isfinite(t[i])))
      throw DataError(kCrossEntropy, "target ", i, " is ", t[i], ", expected a finite value >= 0");
  }
  const auto n = static_cast<double>(logits.dim(0));
  const int64_t classes = logits.dim(1);
  const auto target = [&](int64_t row, int64_t c) { return double{t[row * classes + c]} / n; };
  return of_targets(logits, target, 0.0f);
}

}  // namespace quantrain
