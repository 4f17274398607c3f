#pragma once

#include <vector>

#include "framework/integer/integer_model.hpp"
#include "framework/integer/memory_plan.hpp"
#include "framework/integer/sample_tasks.hpp"

namespace quantrain {

/// A valid program, with everything that is prepared once from it.
struct IntegerModel::Ready {
  Ready(integer::Program valid, KeepWeights keep_weights);

  KeepWeights keep;
  integer::Program program;
  integer::MemoryPlan plan;
  std::vector<integer::PreparedOperation> operations;
  std::vector<int> input_of;             // for each value: its index among the inputs, or -1
  std::vector<int> output_of;            // for each value: its last index among the outputs, or -1
  std::vector<int64_t> input_elements;   // of one sample, for each input
  std::vector<int64_t> output_elements;  // of one sample, for each output
  int64_t least_samples = integer::least_samples_per_task(program);
  std::vector<int64_t> least_to_share;  // for each step: least_samples_to_share()
};

}  // namespace quantrain
