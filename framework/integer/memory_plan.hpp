#pragma once

#include <cstdint>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// Where each value lies in memory while a program runs. The place of a value is free after the
/// last step that reads the value; the places of the program's outputs are never free. A view has
/// the place of its input. An operation that can run in place overwrites an input of the same size
/// that no later step reads.
struct MemoryPlan {
  std::vector<int> roots;        ///< for each value: itself, or the value that it is a view of
  std::vector<int64_t> offsets;  ///< for each value: byte offset for one sample, a multiple of 64
  int64_t sample_bytes = 0;      ///< total size for one sample

  /// Offset in bytes of value `id` in a run of n samples.
  int64_t offset(int id, int64_t n) const { return n * offsets[static_cast<size_t>(id)]; }
};

/// The program must be valid.
MemoryPlan plan_memory(const Program& program);
/// Bytes of a value of one sample, a multiple of 64: this keeps every value aligned, whatever the
/// number of samples.
int64_t padded_bytes(const Value& value);
/// Bytes that a run of n samples on threads() threads takes from the pool if its inputs are codes
/// and its outputs integers: the values, and the scratch memory of the step that needs most, for
/// each task that runs at the same time. Does not allocate this memory. At most 2^62, and 0 for
/// n < 1.
int64_t memory(const Program& program, int64_t n);
/// Bytes that a model of the program keeps between runs: weights and other numbers, as it keeps
/// them, and what is prepared once. Allocated blocks are larger by what their allocator adds.
int64_t kept_bytes(const Program& program);
/// Checks the memory that the model of a valid program needs for its prepared operations and for a
/// run of one sample.
/// Throws: DataError if this memory exceeds the limit. The error names the first layer at which it
/// does, and gives the memory up to this layer and the limit.
void check_memory(const Program& program, int64_t limit, std::string_view where = "model");

}  // namespace quantrain::integer
