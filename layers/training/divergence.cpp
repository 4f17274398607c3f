#include "layers/training/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/kernels/float/ranges.hpp"

namespace quantrain {
namespace {

constexpr float kLargestGrowth = 1000.0f;

float magnitude(const Tensor& x) {
  if (x.elements() == 0) return 0.0f;
  float min = 0.0f;
  float max = 0.0f;
  const Floats values = x.floats();
  kernels::min_max_f32(x.elements(), values, &min, &max);
  const float largest = std::max(-min, max);
  return std::isnan(largest) ? std::numeric_limits<float>::infinity() : largest;
}

}  // namespace

LargestParameter largest_parameter(const Module& module) {
  LargestParameter largest;
  for (const NamedState& entry : module.named_parameters()) {
    const float found = magnitude(entry.tensor);
    if (largest.name.empty() || found > largest.magnitude) largest = {entry.name, found};
  }
  return largest;
}

bool has_diverged(float before, float now) {
  return !std::isfinite(now) || now > kLargestGrowth * std::max(before, 1.0f);
}

}  // namespace quantrain
