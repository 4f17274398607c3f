#pragma once

// Brings the arithmetic that simulation, engine and every export share (docs/quantization.md) into
// namespace quant. It lives in framework/arithmetic because integer kernels use it too.
#include "framework/arithmetic/activation.hpp"
#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/qparams.hpp"
#include "framework/arithmetic/quantize.hpp"

namespace quantrain::quant {

using quantrain::Activation;
using quantrain::add_multipliers;
using quantrain::AddMultipliers;
using quantrain::choose_params;
using quantrain::code_clamp;
using quantrain::CodeClamp;
using quantrain::dequantize;
using quantrain::gradient_passes;
using quantrain::half_even;
using quantrain::make_add_multipliers;
using quantrain::make_multiplier;
using quantrain::mean_multiplier;
using quantrain::Multiplier;
using quantrain::QParams;
using quantrain::QScheme;
using quantrain::QType;
using quantrain::quantize;
using quantrain::quantize_bias;
using quantrain::Range;
using quantrain::requantize;
using quantrain::requantize_add;
using quantrain::rescale_multiplier;
using quantrain::rounding_shift;
using quantrain::ScaleZero;
using quantrain::sum_multiplier;
using quantrain::sum_scale;
using quantrain::unclamped_code;
using quantrain::validate;
using quantrain::weight_scale;

}  // namespace quantrain::quant
