#pragma once

#include "quant/observers/observer.hpp"
#include "tests/tensors.hpp"

// Helpers for the tests of observers.
namespace quantrain::test {

inline constexpr QType kU8{8, false, false};

inline Tensor vector(std::initializer_list<float> values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, std::vector<float>(values));
}

inline std::vector<std::vector<float>> state_of(const quant::Observer& observer) {
  std::vector<std::vector<float>> all;
  for (const NamedState& entry : observer.state()) all.push_back(values(entry));
  return all;
}

}  // namespace quantrain::test
