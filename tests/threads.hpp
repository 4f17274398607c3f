#pragma once

#include <initializer_list>
#include <vector>

namespace quantrain::test {

/// The counts that set_threads() takes: all, but at most 1 if the library is built without threads.
inline std::vector<int> thread_counts(std::initializer_list<int> counts) {
  std::vector<int> possible;
  for (const int n : counts) {
    if (QUANTRAIN_THREADS || n <= 1) possible.push_back(n);
  }
  return possible;
}

}  // namespace quantrain::test
