#pragma once

#include <string>

#include "framework/autograd/tensor.hpp"

namespace quantrain {

/// A parameter or buffer and its path below the module that lists it: "block1.conv.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool constant = false;  ///< given, not learned: saved, but not changed by loading
};

}  // namespace quantrain
