#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// Shapes: x [N, ...]  ->  y [N, product of the rest].
class Flatten : public Module {
 public:
  std::string_view type() const override { return "Flatten"; }

 protected:
  Tensor forward(const Tensor& x) override;
};

}  // namespace quantrain
