#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/optim/optimizer.hpp"
#include "tests/tensors.hpp"

namespace quantrain::test {

inline Tensor parameter(const Shape& shape, uint64_t seed, const std::string& name = "w") {
  Tensor tensor = normal_tensor(shape, seed);
  return tensor.set_requires_grad(true).set_name(name);
}

/// Takes the steps t in [begin, end). Each step has its own random gradient.
inline void take_steps(Optimizer& optimizer, Tensor& w, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    w.set_grad(normal_tensor(w.shape(), static_cast<uint64_t>(100 + t)));
    optimizer.step();
  }
}

/// Largest |tensor - expected| / max(1, |expected|).
inline double distance(const Tensor& tensor, const std::vector<double>& expected) {
  double largest = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(tensor.data()[i] - expected[i]);
    largest = std::max(largest, difference / std::max(1.0, std::abs(expected[i])));
  }
  return largest;
}

/// Each of ten steps rounds each weight at most eight times, by at most 2^-24 of its size.
inline constexpr double kRoundingOfTenSteps = 10 * 8 * 0x1p-24;

}  // namespace quantrain::test
