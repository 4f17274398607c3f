#include "framework/autograd/ops/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
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

/// Rows of logits [..., C].
int64_t rows_of(const Shape& logits) {
  if (logits.rank() < 2) throw ShapeError(kCrossEntropy, "logits must be [..., C], got ", logits);
  if (logits.elements() == 0)
    throw ShapeError(kCrossEntropy, "there is nothing to compare: logits ", logits);
  return logits.elements() / logits[-1];
}

void check_labels(const Shape& logits,
                  std::span<const int32_t> labels,
                  std::optional<int32_t> ignored) {
  if (static_cast<int64_t>(labels.size()) != rows_of(logits))
    throw ShapeError(kCrossEntropy, labels.size(), " labels for logits ", logits);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == ignored || (labels[i] >= 0 && labels[i] < logits[-1])) continue;
    throw DataError(kCrossEntropy,
                    "label ",
                    labels[i],
                    logits.rank() == 2 ? " of sample " : " at position ",
                    i,
                    " is outside [0, ",
                    logits[-1],
                    ")",
                    ignored ? "" : "; if it means that there is no label, set ignore_index");
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
  const int64_t classes = logits.dim(-1);
  const int64_t rows = logits.elements() / classes;
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

std::vector<int32_t> labels_in(const Tensor& targets) {
  constexpr float kMost = 16777216.0f;  // floats hold all whole numbers up to here
  const Floats t = targets.floats();
  std::vector<int32_t> labels;
  labels.reserve(static_cast<size_t>(targets.elements()));
  for (int64_t i = 0; i < targets.elements(); ++i) {
    if (!(std::abs(t[i]) <= kMost && std::trunc(t[i]) == t[i]))
      throw DataError(kCrossEntropy, "target ", i, " is ", t[i], ", expected a label");
    labels.push_back(static_cast<int32_t>(t[i]));
  }
  return labels;
}

Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> labels) {
  const DefaultRounding rounding;
  check_labels(logits.shape(), labels, {});
  Tensor grad_logits;
  if (needs_gradient({logits})) grad_logits = Tensor::empty(logits.shape());
  const Floats logits_floats = logits.floats();
  const float loss =
      kernels::cross_entropy_f32(std::ssize(labels),
                                 logits.dim(-1),
                                 logits_floats,
                                 labels.data(),
                                 grad_logits.defined() ? grad_logits.mutable_data() : nullptr);
  return record<CrossEntropyNode>(Tensor::full({}, loss), {logits}, grad_logits);
}

Tensor cross_entropy(const Tensor& logits,
                     std::span<const int32_t> labels,
                     const CrossEntropyOptions& options) {
  const DefaultRounding rounding;
  const std::optional<int32_t> ignored = options.ignore_index;
  check_labels(logits.shape(), labels, ignored);
  const int64_t classes = logits.dim(-1);
  check_class_weights(classes, options);
  const bool ignores = ignored && std::find(labels.begin(), labels.end(), *ignored) != labels.end();
  if (options.label_smoothing == 0.0f && options.class_weights.empty() && !ignores)
    return cross_entropy(logits, labels);
  const std::vector<float> ones(static_cast<size_t>(classes), 1.0f);
  const float* const w = options.class_weights.empty() ? ones.data() : options.class_weights.data();
  double norm = 0.0;
  for (const int32_t label : labels) norm += label == ignored ? 0.0 : double{w[label]};
  if (norm == 0.0)
    throw DataError(kCrossEntropy,
                    ignores ? "all labels are ignored, or their class weights are 0"
                            : "the class weights of all labels are 0");
  const double smoothing = options.label_smoothing;
  const double share = smoothing / static_cast<double>(classes);
  const auto target = [&](int64_t row, int64_t c) {
    const int32_t label = labels[static_cast<size_t>(row)];
    if (label == ignored) return 0.0;
    return double{w[c]} * ((c == label ? 1.0 - smoothing : 0.0) + share) / norm;
  };
  return of_targets(logits, target, options.label_smoothing);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  return cross_entropy(logits, targets, CrossEntropyOptions{});
}

Tensor cross_entropy(const Tensor& logits,
                     const Tensor& targets,
                     const CrossEntropyOptions& options) {
  const DefaultRounding rounding;
  const Shape& shape = logits.shape();
  const auto n = static_cast<double>(rows_of(shape));
  const Shape rows(std::span<const int64_t>(shape.begin(), shape.end() - 1));
  if (targets.shape() == rows) return cross_entropy(logits, labels_in(targets), options);
  if (!(targets.shape() == shape)) {
    throw ShapeError(kCrossEntropy,
                     "targets must be like logits, for probabilities, or lack the last axis, for "
                     "labels: logits ",
                     shape,
                     ", targets ",
                     targets.shape());
  }
  const Floats t = targets.floats();
  for (int64_t i = 0; i < targets.elements(); ++i) {
    if (!(t[i] >= 0.0f && std::isfinite(t[i])))
      throw DataError(kCrossEntropy, "target ", i, " is ", t[i], ", expected a finite value >= 0");
  }
  const int64_t classes = shape[-1];
  check_class_weights(classes, options);
  if (options.ignore_index)
    throw DataError(kCrossEntropy, "ignore_index is for labels, and the targets are probabilities");
  const std::vector<float>& w = options.class_weights;
  const double smoothing = options.label_smoothing;
  const double share = smoothing / static_cast<double>(classes);
  const auto plain = [&](int64_t row, int64_t c) { return double{t[row * classes + c]} / n; };
  if (w.empty() && smoothing == 0.0) return of_targets(logits, plain, 0.0f);
  const auto target = [&](int64_t row, int64_t c) {
    const double weight = w.empty() ? 1.0 : double{w[static_cast<size_t>(c)]};
    return weight * (double{t[row * classes + c]} * (1.0 - smoothing) + share) / n;
  };
  return of_targets(logits, target, options.label_smoothing);
}

}  // namespace quantrain
