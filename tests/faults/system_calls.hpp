#pragma once

#include <cstdint>
#include <string>

// This program's own open, write, fsync, link, rename and so on, which fail where a test wants it.
namespace quantrain::test {

enum class CallFault {
  kError,       ///< fails with errno = number
  kShortWrite,  ///< of a write: half of the bytes are written, with success
};

/// While it lives, the system call of this thread that comes after `first` others fails, and with
/// all_after every later one of its name. There is one at a time.
class FailingCall {
 public:
  FailingCall(int64_t first,
              int number,
              CallFault fault = CallFault::kError,
              bool all_after = false);
  ~FailingCall();
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;

  std::string name() const;  ///< of the call that failed; empty: none did
};

}  // namespace quantrain::test
