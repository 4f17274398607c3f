#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::c99 {

/// Where a value of the exported network lies.
struct Place {
  enum class Where { kInput, kOutput, kScratch };
  Where where = Where::kScratch;
  int64_t position = 0;  ///< number of the input or output, or bytes from the scratch's begin
};

/// Order in which a step computes its pixels. It decides on which side of the input, and how close
/// to it, the output may lie where both share memory.
enum class Order { kForward, kBackward };

struct MemoryPlan {
  std::vector<Place> places;    ///< of each value; a view lies where its input does
  std::vector<Order> orders;    ///< of each step
  std::vector<int64_t> locals;  ///< of each step: where its own bytes begin in the scratch
  std::vector<int64_t> values;  ///< bytes of all values alive during each step
  int64_t scratch_bytes = 0;
};

/// Plans the scratch of one sample. Inputs and outputs are the caller's. The bytes of values whose
/// lives do not overlap are shared, and a step may write its output over the part of its input that
/// no later pixel reads. `local_bytes` has what each step needs for itself.
/// For a valid program.
MemoryPlan plan_memory(const integer::Program& program, const std::vector<int64_t>& local_bytes);

/// Bytes by which the output must begin before its input (forward) or after it (backward), so that
/// no pixel is overwritten before its last reader; the size of both where nothing may be shared.
int64_t lead(const integer::Operation& op, Order order);

}  // namespace quantrain::c99
