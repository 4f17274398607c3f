#pragma once

#include <initializer_list>
#include <vector>

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

}  // namespace quantrain::test
