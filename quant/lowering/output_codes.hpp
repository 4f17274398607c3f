#pragma once

#include <cstdint>
#include <vector>

#include "framework/autograd/tensor.hpp"
#include "framework/integer/program.hpp"

namespace quantrain::quant {

/// About how many codes a channel of an output gets, if all channels share one scale.
struct ChannelCodes {
  int channel = 0;      ///< index along the last axis
  double codes = 0.0;   ///< may be below 1: then all values of the channel get the same code
  int of = 256;         ///< codes of the output
  int64_t samples = 0;  ///< in which they were counted; 0: estimated from the weights
};

/// The value of which this one is a view, perhaps after several; else the value itself.
int without_views(const integer::Program& program, int value);

/// The channels of the network's output `value` that get fewer than 16 of its codes. `output`: its
/// codes for the example. If that holds 8 samples or more, counts the codes from the smallest to
/// the largest one. Of fewer samples, an estimate from the weights of the product that computes the
/// value, because channels of smaller weights reach less far:
///   r[c] = m[c] * sum over i of |w[c, i]| * 255,   codes[c] = min(r[c], codes * r[c] / max of r),
/// where m are the multipliers of (8).
/// Empty if the value holds no codes, or if it has 4 bits or fewer.
std::vector<ChannelCodes> few_output_codes(const integer::Program& program,
                                           int value,
                                           const Tensor& output);

}  // namespace quantrain::quant
