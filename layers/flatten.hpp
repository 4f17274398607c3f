#pragma once

#include "layers/module.hpp"

namespace quantrain {

/// y = x with all axes except the first merged into one.
/// Shapes: x [N, ...]  ->  y [N, product of the other extents].
class Flatten : public Module {
 public:
  static constexpr std::string_view kType = "Flatten";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  Tensor forward(const Tensor& x) override;
};

}  // namespace quantrain
