#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

// Logits [..., C] hold C scores in each row: [N, C] of samples, [N, H, W, C] of pixels. R is the
// number of rows, r the index of one.

/// y = mean over r of -log softmax(logits[r, :])[labels[r]].
/// Shapes: logits [..., C], labels [R]: one for each row, in row-major order  ->  y [].
/// Gradient: grad_logits[r, c] = grad_y * (softmax(logits[r, :])[c] - (c == labels[r])) / R.
/// Throws: ShapeError if logits have fewer than two axes or no elements, or there are not R labels;
/// DataError naming the label if a label is outside [0, C).
/// Source: ONNX SoftmaxCrossEntropyLoss, reduction mean.
Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> labels);

struct CrossEntropyOptions {
  float label_smoothing = 0.0f;        ///< e: share of each target that is spread over all classes
  std::vector<float> class_weights{};  ///< w [C]; empty: 1 for all
  /// Rows with this label do not count: neither in the loss, nor in the mean, nor in the gradient.
  /// It may be outside of [0, C), such as 255 in images of labels.
  std::optional<int32_t> ignore_index{};
};

/// y = sum over r and c of -t[r, c] * log softmax(logits[r, :])[c], with the targets
/// t[r, c] = w[c] * ((1 - e) * (c == labels[r]) + e / C) / (sum over r of w[labels[r]]), both
/// without the rows that are ignored.
/// Shapes: as above.
/// Gradient: grad_logits[r, c] =
/// grad_y * (softmax(logits[r, :])[c] * (sum over k of t[r, k]) - t[r, c]).
/// Throws: as above; DataError if e is outside [0, 1], a weight is negative or not finite, all rows
/// are ignored, or the weights of all labels are 0; ShapeError if there are weights, but not one
/// for each class.
/// Source: Szegedy et al. 2016, section 7; PyTorch's cross_entropy.
Tensor cross_entropy(const Tensor& logits,
                     std::span<const int32_t> labels,
                     const CrossEntropyOptions& options);

/// For targets like logits, which are probabilities, such as mixup's:
/// y = mean over r of -sum over c of w[c] * ((1 - e) * targets[r, c] + e / C)
/// * log softmax(logits[r, :])[c].
/// For targets that lack the last axis of logits: they are labels, one for each row, as above. A
/// batch [N, H, W] of images of labels is such a tensor.
/// Gradient: of probabilities t[r, c] = w[c] * ((1 - e) * targets[r, c] + e / C) / R as above. The
/// targets get no gradient.
/// Throws: as above; ShapeError if targets have neither of the two shapes; DataError if a
/// probability is negative or not finite, a label is not a whole number, or ignore_index is set for
/// probabilities.
/// Source: PyTorch's cross_entropy with class probabilities.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets);
Tensor cross_entropy(const Tensor& logits,
                     const Tensor& targets,
                     const CrossEntropyOptions& options);

/// The labels that a tensor of whole numbers holds, in row-major order.
/// Throws: DataError if a value is not a whole number of at most 2^24 in magnitude.
std::vector<int32_t> labels_in(const Tensor& targets);

}  // namespace quantrain
