#pragma once

#include <string>
#include <string_view>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// Weights within [-1, 1] (DoReFa-Net): t = tanh(w) / m, m = max |tanh(w)| over the weights that
/// share a scale, 1 if they are all 0. Then (5) gives the scale 1 / qmax, and (3) the code
/// half_even(qmax * t). DoReFa-Net's own codes are odd multiples of half a step, of which none is
/// 0; ours are all multiples of a step.   docs/quantization.md (28)
/// Shapes: w [O, ...]  ->  t like w.
/// Gradient: of t, also through m: (1 - tanh(w)^2) (g - [w is the first with the largest |tanh(w)|]
/// sign(w) sum(g t)) / m.
/// Source: Zhou et al. 2016, DoReFa-Net, equation (9).
struct DoReFa {
  static constexpr std::string_view kKind = "dorefa";

  /// Empty: all types fit, with one scale or one for each output.
  std::string fault(const QType& /*type*/, bool /*per_channel*/) const { return ""; }
  Tensor operator()(const Tensor& w, bool per_channel) const;

  static void describe(auto& /*options*/, auto& /*fields*/) {}
  friend bool operator==(const DoReFa&, const DoReFa&) = default;
};

}  // namespace quantrain::quant
