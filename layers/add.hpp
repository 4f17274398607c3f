#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = the sum of the inputs, for example of a residual branch and its shortcut. Takes two tensors,
/// or a list of one or more tensors. For a list, returns a list that holds y. Add is a module, so
/// that quantization has a place for the quantization parameters of the sum. An integer network
/// adds a list in one operation and rounds once.
/// Shapes: equal for all inputs  ->  y like them.
/// Source: ONNX Sum.
class Add : public Module {
 public:
  static constexpr std::string_view kType = "Add";
  using Members = NoMembers;
  static constexpr InputCount kInputs = InputCount::any();
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if the shapes differ or the list is empty.
  Tensor forward(const Tensor& a, const Tensor& b) final { return take_forward(a, b); }
  Tensor take_forward(Tensor a, Tensor b) override;
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override;
};

}  // namespace quantrain
