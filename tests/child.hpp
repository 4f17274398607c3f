#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace quantrain::test {

/// The result of a process that ran a function.
struct Child {
  /// The signal that killed the process; SIGALRM if it hung, 0 if none. -1 if the process could not
  /// be started or waited for.
  int signal = 0;
  std::string text;         ///< what the function returned, or the message of its exception
  int64_t kilobytes = 0;    ///< how much the process grew
  bool was_killed = false;  ///< by kill_child()
};

/// Runs f in a separate process, because f may crash or hang. The process is killed after
/// `seconds`. On Windows, which cannot copy a process, f runs in this one.
Child in_child(const std::function<std::string()>& f, unsigned seconds = 60);

/// Called in in_child(), kills the process at once. On Windows, it throws to in_child() instead;
/// there scripts/test_windows kills processes.
[[noreturn]] void kill_child();

}  // namespace quantrain::test
