#pragma once

#include <string>
#include <string_view>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/tensor.hpp"

namespace quantrain::quant {

/// Binary weights whose magnitudes stay near 1: t = w, and the gradient stops at weights beyond
/// [-1, 1], whose sign would hardly ever change again. Weights of 1 bit are the signs of t times a
/// scale, the mean of |t| of an output, also without this function.   docs/quantization.md (27),
/// (28)
/// Shapes: w [O, ...]  ->  t like w.
/// Gradient: passes where |w| <= 1, else 0.
/// Source: Courbariaux et al. 2016, Binarized Neural Networks, section 1.3; Rastegari et al. 2016,
/// XNOR-Net, section 3.1, for the scale.
struct Binary {
  static constexpr std::string_view kKind = "binary";

  /// Why the codes are not those of 1 bit; empty if they are.
  std::string fault(const QType& type, bool per_channel) const;
  Tensor operator()(const Tensor& w, bool per_channel) const;

  static void describe(auto& /*options*/, auto& /*fields*/) {}
  friend bool operator==(const Binary&, const Binary&) = default;
};

}  // namespace quantrain::quant
