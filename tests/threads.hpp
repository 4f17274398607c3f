#pragma once

#include <initializer_list>
#include <vector>

#include "framework/core/parallel.hpp"

namespace quantrain::test {

/// Those of `counts` that set_threads() accepts. Without threads in the build, it accepts none
/// above 1.
inline std::vector<int> thread_counts(std::initializer_list<int> counts) {
  std::vector<int> possible;
  for (const int n : counts) {
    if (QUANTRAIN_THREADS || n <= 1) possible.push_back(n);
  }
  return possible;
}

/// Restores the default number of threads for the next test.
struct DefaultThreads {
  ~DefaultThreads() { set_threads(0); }
};

}  // namespace quantrain::test
