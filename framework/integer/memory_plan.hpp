#pragma once

#include <cstdint>
#include <vector>

#include "framework/integer/program.hpp"

namespace quantrain::integer {

/// Where each value lies while a program runs. A place is free again after its last reader; a view
/// lies where its input does; an operation that may writes its output over an input that nothing
/// reads afterwards.
struct MemoryPlan {
  std::vector<int> roots;        ///< of each value: the one whose bytes it is, through views
  std::vector<int64_t> offsets;  ///< of each value, in bytes for one sample; multiples of 64
  int64_t sample_bytes = 0;      ///< of all places together

  /// Where value `id` of n samples begins.
  int64_t offset(int id, int64_t n) const { return n * offsets[static_cast<size_t>(id)]; }
};

/// For a valid program.
MemoryPlan plan_memory(const Program& program);
/// Bytes that n samples take from the pool while the program runs on threads() threads, from codes
/// to integers, before anything is allocated: their values, and what the kernels of the greediest
/// step need beside them. At most 2^62, and 0 for n < 1.
int64_t memory(const Program& program, int64_t n);
/// Throws: DataError naming the layer, the bytes and the limit if a model of a valid program would
/// take more: what its operations are prepared to up to that layer, and its run of one sample.
void check_memory(const Program& program, int64_t limit);

}  // namespace quantrain::integer
