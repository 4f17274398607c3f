#pragma once

#include "framework/arithmetic/qparams.hpp"

namespace quantrain::quant {

/// Parameters of activations for the tests of fake quantization: real values -1.5 to 6.
inline const QParams kFourBits{{.bits = 4}, -1, {0.5f}, {3}};

}  // namespace quantrain::quant
