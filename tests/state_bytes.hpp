#pragma once

#include <string>
#include <vector>

#include "framework/autograd/parameters.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::test {

/// Bytes that tell whether a value, or a state, changed.
inline std::string bytes_of(const Tensor& x) {
  const Floats floats = x.floats();
  return {reinterpret_cast<const char*>(floats.data()),
          static_cast<size_t>(x.elements()) * sizeof(float)};
}

inline std::string bytes_of(const std::vector<NamedState>& state) {
  std::string all;
  for (const NamedState& entry : state)
    all.append(entry.name).append(entry.bytes().begin(), entry.bytes().end());
  return all;
}

}  // namespace quantrain::test
