#pragma once

#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/integer/operation.hpp"

// Runs integer operations on bytes, and computes the codes that they should give.
namespace quantrain::integer::test {

inline void run_into(void* y, const Operation& op, int64_t n, Inputs inputs) {
  PreparedOperation(op).run(n, inputs, y);
}

template <class T>
std::vector<T> run_as(const Operation& op, int64_t n, const std::vector<std::vector<uint8_t>>& x) {
  std::vector<const uint8_t*> inputs;
  for (const auto& input : x) inputs.push_back(input.data());
  std::vector<T> y(static_cast<size_t>(n * output_size(op)));
  run_into(y.data(), op, n, inputs);
  return y;
}

inline std::vector<uint8_t> run(const Operation& op,
                                int64_t n,
                                const std::vector<std::vector<uint8_t>>& x) {
  return run_as<uint8_t>(op, n, x);
}

/// The stored byte for an accumulator of real value scale * acc.   docs/quantization.md (8)
inline uint8_t expected_code(int32_t acc, double scale, const QParams& y, Activation activation) {
  const CodeClamp clamp = code_clamp(activation, y.type, y.scale[0], y.zero_point[0]);
  const Multiplier m = make_multiplier(scale / static_cast<double>(y.scale[0]));
  const int32_t offset = y.type.is_signed ? 128 : 0;
  return static_cast<uint8_t>(requantize(acc, m, y.zero_point[0], clamp.lo, clamp.hi) + offset);
}

}  // namespace quantrain::integer::test
