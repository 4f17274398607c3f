#pragma once

#include <string>

#include "layers/module.hpp"

namespace quantrain {

/// The largest magnitude among all parameters of the module, and the parameter's name. NaN counts
/// as infinity.
struct LargestParameter {
  std::string name{};
  float magnitude = 0.0f;
};
LargestParameter largest_parameter(const Module& module);

/// Whether parameters that were at most `before` have grown to `now` because training diverged:
/// `now` is not finite, or more than 1000 times the larger of `before` and 1.
bool has_diverged(float before, float now);

}  // namespace quantrain
