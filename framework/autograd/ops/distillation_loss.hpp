#pragma once

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// Distillation: how far a student's classes are from those of a teacher, such as the float network
/// from which a quantized network started.
///   y = T^2 * mean over rows of sum over c of p[c] * (log p[c] - log q[c]),
///   p = softmax(teacher / T), q = softmax(student / T)
/// Computed as the difference of two cross entropies. T^2 makes the gradients of different
/// temperatures T comparable.
/// Shapes: student, teacher [..., C]  ->  y [].
/// Gradient: grad_student = grad_y * T * (q - p) / number of rows; the teacher gets none.
/// Throws: ShapeError if the shapes differ, have fewer than two axes or no elements; DataError
/// unless T is positive and finite.
/// Source: Hinton et al. 2015, Distilling the Knowledge in a Neural Network, section 2.
Tensor distillation_loss(const Tensor& student, const Tensor& teacher, float temperature = 1.0f);

}  // namespace quantrain
