#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = a + b for equal shapes: the end of a residual branch. It is a module so that quantization
/// can attach the parameters of the sum.
class Add : public Module {
 public:
  std::string_view type() const override { return "Add"; }

 protected:
  /// Throws: ShapeError if the shapes differ.
  Tensor forward(const Tensor& a, const Tensor& b) override;
};

}  // namespace quantrain
