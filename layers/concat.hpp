#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = a and b one after the other along the last axis: channels of images.
/// Shapes: a [..., A], b [..., B], alike but for the last axis  ->  y [..., A + B].
/// Source: ONNX Concat.
class Concat : public Module {
 public:
  std::string_view type() const override { return "Concat"; }

 protected:
  /// Throws: ShapeError as concat().
  Tensor forward(const Tensor& a, const Tensor& b) override;
};

}  // namespace quantrain
