#pragma once

#include "framework/arithmetic/activation.hpp"
#include "framework/kernels/float/gemm.hpp"
#include "framework/kernels/params.hpp"

// What products of matrices and convolutions share.
namespace quantrain::kernels {

/// The part of the epilogue that falls to one call of a kernel: columns from `column` on; `first`
/// and `last` say which parts of the sum the call covers.
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
