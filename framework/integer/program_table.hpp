#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// A human-readable summary of one step.
struct StepSummary {
  std::string name;  ///< of the layer
  std::string kernel;
  Shape output;               ///< of one sample
  int weight_bits = 0;        ///< 0: no weights
  int output_bits = 0;        ///< 32 for accumulators
  int64_t bytes = 0;          ///< weights, biases, multipliers and tables
  int64_t multiply_adds = 0;  ///< of one sample
};

/// The steps of a program, in order.
std::vector<StepSummary> summary(const Program& program);

/// Prints a table of the inputs and of the steps, with kernel, shape, bits, bytes and
/// multiply-adds, and the totals.
std::ostream& operator<<(std::ostream& stream, const Program& program);

}  // namespace quantrain::integer
