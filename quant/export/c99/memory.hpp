#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::c99 {

/// Where a value of the exported network is stored.
struct Place {
  enum class Where { kInput, kOutput, kScratch };
  Where where = Where::kScratch;
  int64_t position = 0;  ///< index of the input or output, or byte offset in the scratch
};

/// Order in which a step computes its pixels. If input and output share memory, the order decides
/// on which side of the input the output may lie, and how close to it.
enum class Order { kForward, kBackward };

struct SourceMemory {
  std::vector<Place> places;    ///< of each value; a view has the place of its input
  std::vector<Order> orders;    ///< of each step
  std::vector<int64_t> locals;  ///< of each step: where its own bytes begin in the scratch
  std::vector<int64_t> values;  ///< of each step: total bytes of the live values in the scratch
  int64_t scratch_bytes = 0;
};

/// Plans the scratch of one sample. The caller provides the memory of inputs and outputs. Values
/// whose lifetimes do not overlap share bytes, and a step may write its output over the part of its
/// input that no later pixel reads. local_bytes: the bytes that each step needs for itself. The
/// program must be valid.
SourceMemory plan_source_memory(const integer::Program& program,
                                const std::vector<int64_t>& local_bytes);

/// The least distance between the first byte of the output and the first byte of the input. If the
/// output begins at least this many bytes before the first byte of the input (forward) or after it
/// (backward), no byte of the input is overwritten before its last read. If input and output may
/// not share memory, the distance is the size of inputs and output together.
int64_t lead(const integer::Operation& op, Order order);

}  // namespace quantrain::c99
