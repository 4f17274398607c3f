#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = a * b, element by element. One operand may instead hold a factor for each channel of each
/// sample, as at the end of a squeeze-and-excitation block. Mul is a module, so that quantization
/// has a place for the quantization parameters of the product.
/// Shapes: a and b [...], or one [N, ..., C] and the other [N, 1, ..., 1, C]  ->  y like the
/// larger operand.
/// Gradient: grad_a = grad_y * b, grad_b = grad_y * a. The gradient of a smaller operand is summed
/// over the axes along which this operand was repeated.
/// Source: Hu et al. 2018; ONNX Mul.
class Mul : public Module {
 public:
  static constexpr std::string_view kType = "Mul";
  using Members = NoMembers;
  static constexpr InputCount kInputs{2, 2};
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError for other shapes.
  Tensor forward(const Tensor& a, const Tensor& b) override;
};

}  // namespace quantrain
