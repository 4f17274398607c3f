#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/sanitized.hpp"

// This program's operator new counts, and fails where a test wants it to.
namespace quantrain::test {

/// Since the program started.
struct Allocations {
  int64_t made;
  int64_t live;  ///< made and not freed
};
Allocations allocations();

/// While it lives, the allocation that comes after `first` others throws std::bad_alloc; with
/// all_after, every later one too. There is one at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t first, bool all_after = false);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool happened() const;
};

/// Under sanitizers a part of the points fails: every seventh.
inline constexpr int64_t kPointStep = kSanitized ? 7 : 1;

/// What became of a function whose allocations failed one by one.
struct Survival {
  int64_t points = 0;  ///< allocations that failed
  int64_t errors = 0;  ///< of these, those that ended it; the others it went on without
  std::string fault;   ///< what was wrong at the first point where something was; empty: nothing
};

/// Runs f with its first allocation failing, then its second, and so on to its last; each alone,
/// and with all after it. Each time f must return what it returns otherwise, or throw
/// std::bad_alloc or an Error; nothing may stay allocated; `after` says what else is wrong.
Survival fail_each_allocation(const std::function<std::string()>& f,
                              const std::function<std::string()>& after = {});

}  // namespace quantrain::test
