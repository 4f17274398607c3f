#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = mean over n of -log softmax(logits[n, :])[labels[n]].
/// Shapes: logits [N, C], labels [N] -> y [].
/// Gradient: grad_logits[n, c] = grad_y * (softmax(logits[n, :])[c] - (c == labels[n])) / N.
/// Throws: ShapeError if logits are not [N, C], N is 0, or there are not N labels; DataError naming
/// the label if a label is outside [0, C).
/// Source: ONNX SoftmaxCrossEntropyLoss, reduction mean.
Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> labels);

struct CrossEntropyOptions {
  float label_smoothing = 0.0f;        ///< e: share of each target that is spread over all classes
  std::vector<float> class_weights{};  ///< w [C]; empty: 1 for all
};

/// y = sum over n and c of -t[n, c] * log softmax(logits[n, :])[c], with the targets
/// t[n, c] = w[c] * ((1 - e) * (c == labels[n]) + e / C) / (sum over n of w[labels[n]]).
/// Shapes: as above.
/// Gradient: grad_logits[n, c] =
/// grad_y * (softmax(logits[n, :])[c] * (sum over k of t[n, k]) - t[n, c]).
/// Throws: as above; DataError if e is outside [0, 1], a weight is negative or not finite, or the
/// weights of all labels are 0; ShapeError if there are weights, but not one for each class.
/// Source: Szegedy et al. 2016, section 7; PyTorch's cross_entropy.
Tensor cross_entropy(const Tensor& logits,
                     std::span<const int32_t> labels,
                     const CrossEntropyOptions& options);

/// y = mean over n of -sum over c of targets[n, c] * log softmax(logits[n, :])[c], for targets that
/// are probabilities, such as mixup's.
/// Shapes: logits, targets [N, C]  ->  y [].
/// Gradient: grad_logits[n, c] =
/// grad_y / N * (softmax(logits[n, :])[c] * (sum over k of targets[n, k]) - targets[n, c]).
/// The targets get no gradient.
/// Throws: ShapeError if logits and targets are not both [N, C], or N or C is 0; DataError if a
/// target is negative or not finite.
/// Source: PyTorch's cross_entropy with class probabilities.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets);

}  // namespace quantrain
