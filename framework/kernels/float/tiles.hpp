#pragma once

#include "framework/arithmetic/activation.hpp"
#include "framework/kernels/float/gemm.hpp"
#include "framework/kernels/params.hpp"

// Shared by matrix products and convolutions.
namespace quantrain::kernels {

/// Sets the part of the epilogue that one kernel call applies. `column` is the call's first column.
/// `first` and `last` tell whether the call begins and ends the sum.
template <class Params>
void set_epilogue(
    Params& p, const EpilogueF32& epilogue, int64_t column, bool first = true, bool last = true) {
  constexpr float kInfinity = __builtin_inff();
  const bool clamps = last && epilogue.activation != Activation::kNone;
  p.accumulate = epilogue.accumulate || !first;
  p.bias = last && epilogue.bias != nullptr ? epilogue.bias + column : nullptr;
  p.lo = clamps ? 0.0f : -kInfinity;
  p.hi = clamps ? upper_bound(epilogue.activation) : kInfinity;
}

}  // namespace quantrain::kernels
