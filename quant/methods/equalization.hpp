#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "quant/methods/method.hpp"

namespace quantrain::quant {

/// Cross-layer equalization: divides channel c of a value between two layers by s[c], and
/// multiplies the weights that read it by s[c], so that both layers' weights have the same range in
/// each channel. The float network computes the same. Batch norms count as folded: their gamma and
/// beta are divided. Goes through all values again until the factors are nearly 1.
///   s = sqrt(r1 * r2) / r2;   r1[c]: largest |weight| that makes the channel, r2[c]: that reads it
/// A value qualifies if products alone read it, with only pools, concatenations and reshapes
/// between, if its activation is a ReLU or none, and if it is no output. All ranges are chosen
/// anew, from the run's data. With a scale for each channel (WeightConfig::per_channel), only the
/// reading weights and the value itself gain.
/// Rows: the largest max(s, 1 / s) of a value, in its first pass and in its last.
/// Throws: DataError unless rounds is positive. A network with learned or given scales is left as
/// it is: each row says so.
/// Source: Nagel et al. 2019, section 4.1, equation 11.
struct Equalization {
  static constexpr std::string_view kName = "equalization";
  int64_t rounds = 20;  ///< passes over all values, at most

  void apply(MethodRun& run) const;
};

/// s of each channel; 1 where a range is 0.
std::vector<float> equalizing_factors(std::span<const float> r1, std::span<const float> r2);

}  // namespace quantrain::quant
