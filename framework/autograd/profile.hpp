#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// While it lives, counts what this thread spends its time on, by operation: "conv2d", "conv2d
/// backward", an optimizer's "adam". Each operation is charged with all the time since the end of
/// the one before it, so that nothing is left out: what is not recorded goes to what comes next.
/// Where one lives inside another, the inner one counts.
class Profile {
 public:
  struct Entry {
    std::string operation;
    int64_t calls;
    double seconds;
  };

  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// The most expensive first.
  std::vector<Entry> entries() const;

  /// An operation has ended; `part` is appended to its name. Called by the library.
  static void mark(std::string_view operation, std::string_view part = {});

 private:
  using Clock = std::chrono::steady_clock;

  Profile* outer_;
  Clock::time_point last_ = Clock::now();
  std::vector<Entry> entries_;
};

}  // namespace quantrain
