#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = the sum of the inputs, which have equal shapes: the end of residual branches. Takes two
/// tensors, or a list of any number of tensors; given a list, returns a list that holds y. It is a
/// module so that quantization can attach the parameters of the sum. In integers a list is one
/// operation, rounded once.
/// Source: ONNX Sum.
class Add : public Module {
 public:
  std::string_view type() const override { return "Add"; }

 protected:
  /// Throws: ShapeError if the shapes differ, or the list is empty.
  Tensor forward(const Tensor& a, const Tensor& b) override;
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override;
};

}  // namespace quantrain
