#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/integer/program.hpp"

// How the integers of an output are compared.   docs/quantization.md (12)
namespace quantrain::integer {

/// Factors that make the integers of an output comparable: of two elements i and j, the one with
/// the larger real number has the larger integer[i] * factor[i % factor.size()], in 64 bits, up to
/// the rounding of the factors. {1} if all elements share a scale, else
/// factor[c] = llround(2^30 scale[c] / largest scale).
std::vector<int32_t> class_factors(const Value& output);

/// Number of classes in one row of an output: the extent of its last axis, 1 for a scalar.
int64_t class_count(const Value& output);

/// The class of a row of `count` integers, at position `at` of the output: the index of its largest
/// real number, the lowest if several are equal.
template <class Integer>
int32_t class_of(const Integer* row,
                 int64_t count,
                 const std::vector<int32_t>& factors,
                 int64_t at = 0) {
  const auto comparable = [&](int64_t c) {
    return int64_t{row[c]} * factors[static_cast<size_t>(at + c) % factors.size()];
  };
  int64_t best = 0;
  for (int64_t c = 1; c < count; ++c) {
    if (comparable(c) > comparable(best)) best = c;
  }
  return static_cast<int32_t>(best);
}

/// Writes the class of each row of the output's integers of some samples.
void classify(const Value& output, std::span<const int32_t> scores, int32_t* classes);

}  // namespace quantrain::integer
