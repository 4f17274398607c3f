#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/sanitized.hpp"

// This program's operator new counts allocations. A test can make it fail.
namespace quantrain::test {

/// Counts since the program started.
struct Allocations {
  int64_t made;
  int64_t live;  ///< made and not freed
};
Allocations allocations();

/// During its lifetime, the first `first` allocations succeed, and the next one throws
/// std::bad_alloc. With all_after, all later allocations throw too. There may be only one
/// FailingAllocation at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t first, bool all_after = false);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool happened() const;
};

/// Under sanitizers, a point is one of so many allocations.
inline constexpr int64_t kPointStep = kSanitized ? 37 : 1;

/// The result of a function whose allocations failed one by one.
struct Survival {
  int64_t points = 0;  ///< allocations that failed
  int64_t errors = 0;  ///< failed allocations that made the function throw
  std::string fault;   ///< the first fault found; empty: none
};

/// Runs f once for each of its allocations, and makes this one allocation fail. Then runs f once
/// more for each allocation, and makes this allocation and all later ones fail. Each time f must
/// return its usual result, or throw std::bad_alloc or an Error, and nothing may stay allocated.
/// `after` returns a text if it finds another fault.
Survival fail_each_allocation(const std::function<std::string()>& f,
                              const std::function<std::string()>& after = {});

}  // namespace quantrain::test
