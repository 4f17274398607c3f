#pragma once

#include <string>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A parameter or buffer with its path from the module that was asked: "block1.conv.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool constant = false;  ///< given to the module, not learned: saved, and never loaded over
};

}  // namespace quantrain
