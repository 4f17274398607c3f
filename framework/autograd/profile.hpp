#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// While it lives, measures where this thread spends its time, by recorded operation: "conv2d",
/// "conv2d backward", an optimizer's "adam". An operation is charged with all the time since the
/// end of the operation before it. Work that is not recorded thus counts for the next operation,
/// and work after the last operation is not counted. Use it as a local variable. Of nested
/// profiles, only the innermost counts.
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

  /// Marks the end of an operation; `part` is appended to its name. Called by the library.
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
