#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// While it lives, counts what this thread spends its time on, by recorded operation: "conv2d",
/// "conv2d backward", an optimizer's "adam". Each is charged with all the time since the end of the
/// one before it, so what is not recorded goes to what comes next; what follows the last one is not
/// counted. A local variable: where one lives inside another, the inner one counts.
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

/// A table: operation, calls, milliseconds and their share, the most expensive first.
std::ostream& operator<<(std::ostream& stream, const Profile& profile);

}  // namespace quantrain
