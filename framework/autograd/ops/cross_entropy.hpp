#pragma once

#include <cstdint>
#include <span>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// y = mean over n of -log softmax(logits[n, :])[labels[n]].
/// Shapes: logits [N, C], labels [N] -> y [].
/// Gradient: grad_logits[n, c] = grad_y * (softmax(logits[n, :])[c] - (c == labels[n])) / N.
/// Throws: ShapeError if logits are not [N, C], N is 0 or not the number of labels; DataError
/// naming the label if one is outside [0, C).
/// Source: ONNX SoftmaxCrossEntropyLoss, reduction mean.
Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> labels);

}  // namespace quantrain
