#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/autograd/grad_check.hpp"
#include "framework/autograd/named_state.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"

namespace quantrain::test {

/// Values in [low, high), the same on every machine.
inline Tensor random_tensor(const Shape& shape,
                            uint64_t seed = 1,
                            float low = -1.0f,
                            float high = 1.0f) {
  Tensor tensor = Tensor::empty(shape);
  Random random(seed);
  float* const out = tensor.mutable_data();
  for (int64_t i = 0; i < tensor.elements(); ++i) out[i] = random.uniform(low, high);
  return tensor;
}

/// Standard normal values, the same on every machine.
inline Tensor normal_tensor(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Tensor tensor = Tensor::empty(shape);
  float* const x = tensor.mutable_data();
  for (int64_t i = 0; i < shape.elements(); ++i) x[i] = random.normal();
  return tensor;
}

/// A random tensor that requires a gradient.
inline Tensor random_leaf(const Shape& shape,
                          uint64_t seed = 1,
                          float low = -1.0f,
                          float high = 1.0f) {
  return random_tensor(shape, seed, low, high).set_requires_grad(true);
}

/// Distinct values in random order, at least 1 / 8 apart and at least 1 / 16 from 0, so that no
/// kink or tie lies within a step of finite differences.
inline Tensor spread_leaf(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Tensor x = Tensor::empty(shape);
  float* const out = x.mutable_data();
  const int64_t n = x.elements();
  for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(i - n / 2) + 0.5f) / 8.0f;
  for (int64_t i = n - 1; i > 0; --i) std::swap(out[i], out[random.below(i + 1)]);
  return x.set_requires_grad(true);
}

/// Write access to the floats of a const tensor. The parameter is a copy that shares them.
inline float* writable(Tensor tensor) { return tensor.mutable_data(); }

/// Copies the numbers to the caller's tensor. The parameter `tensor` is a copy that shares its
/// floats.
inline void set(Tensor tensor, const std::vector<float>& numbers) {
  REQUIRE(static_cast<int64_t>(numbers.size()) == tensor.elements());
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data());
}

inline Tensor make_tensor(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from(shape, values);
}

inline Tensor make_leaf(const Shape& shape, const std::vector<float>& values) {
  return Tensor::from(shape, values).set_requires_grad(true);
}

inline std::vector<float> values(const Tensor& tensor) {
  const Floats floats = tensor.floats();
  return {floats.data(), floats.data() + tensor.elements()};
}
/// The same for an entry of a state. Integers are exact up to 2^24.
inline std::vector<float> values(const NamedState& entry) {
  if (!entry.holds_integers()) return values(entry.tensor);
  std::vector<float> all;
  for (const int64_t value : entry.integers.values()) all.push_back(static_cast<float>(value));
  return all;
}
/// The entry of this name in the state of a module or optimizer.
inline NamedState entry_of(const std::vector<NamedState>& state, std::string_view name) {
  for (const NamedState& entry : state) {
    if (entry.name == name) return entry;
  }
  FAIL("no entry \"" << name << '"');
  return state[0];
}

/// Checks that the gradients of all inputs that require one agree with finite differences, as
/// closely as GradCheckOptions says.
inline void check_gradient(const std::function<Tensor()>& function,
                           const std::vector<Tensor>& inputs,
                           const GradCheckOptions& options = {}) {
  const GradCheckResult result = grad_check(function, inputs, options);
  INFO(result.worst);
  CHECK(result.ok);
}

/// Largest absolute difference between two tensors of the same shape.
inline double max_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<float> x = values(a);
  const std::vector<float> y = values(b);
  double largest = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::fmax(largest, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  }
  return largest;
}

/// 0, 1 and sizes around vector widths and the kernels' block sizes.
inline const std::vector<int64_t> kAwkwardSizes{0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65};

}  // namespace quantrain::test
