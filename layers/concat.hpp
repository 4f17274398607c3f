#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = the inputs one after the other along the last axis, which holds the channels. Takes two
/// tensors, or a list of one or more tensors. For a list, returns a list that holds y.
/// Shapes: x_i [..., C_i], equal except for the last axis  ->  y [..., sum of C_i].
/// Source: ONNX Concat.
class Concat : public Module {
 public:
  static constexpr std::string_view kType = "Concat";
  using Members = NoMembers;
  static constexpr InputCount kInputs = InputCount::any();
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError like concat().
  Tensor forward(const Tensor& a, const Tensor& b) override;
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override;
};

}  // namespace quantrain
