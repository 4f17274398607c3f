#pragma once

#include <string>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A parameter or buffer, and its path relative to the module that lists it: "block1.conv.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool constant = false;  ///< not learned: saving writes it, loading only compares it
};

}  // namespace quantrain
