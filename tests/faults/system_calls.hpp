#pragma once

#include <cstdint>
#include <string>

// Replaces open, write, fsync, linkat, rename and other system calls by functions that a test can
// make fail.
namespace quantrain::test {

enum class CallFault {
  kError,       ///< the call fails with errno = number
  kShortWrite,  ///< write() writes half of the bytes and succeeds; all else fails as with kError
};

/// During its lifetime, makes one system call of this thread fail, after `first` calls that run as
/// usual. With all_after, all later calls of the same name fail too. There may be only one
/// FailingCall at a time.
class FailingCall {
 public:
  FailingCall(int64_t first,
              int number,
              CallFault fault = CallFault::kError,
              bool all_after = false);
  ~FailingCall();
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;

  std::string name() const;  ///< the name of the call that failed; empty: no call failed
};

}  // namespace quantrain::test
