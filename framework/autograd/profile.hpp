#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// During its lifetime, a Profile measures how much time this thread spends in each recorded
/// operation: "conv2d", "conv2d backward", an optimizer's "adam". An operation is charged with all
/// the time since the end of the previous operation. Work that is not recorded is thus charged to
/// the next operation, and work after the last operation is not counted. Use a Profile as a local
/// variable. If profiles are nested, only the innermost one measures. They may end in any order.
class Profile {
 public:
  struct Entry {
    std::string operation;
    int64_t calls;
    double seconds;
  };

  [[nodiscard]] Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Sorted by time, the most expensive operation first.
  std::vector<Entry> entries() const;

  /// Marks the end of an operation; `part` is appended to its name. Called by the library.
  static void mark(std::string_view operation, std::string_view part = {});

 private:
  using Clock = std::chrono::steady_clock;

  Profile* outer_;
  Clock::time_point last_ = Clock::now();
  std::vector<Entry> entries_;
};

/// Prints a table of operation, calls, milliseconds and share of the total, most expensive first.
std::ostream& operator<<(std::ostream& stream, const Profile& profile);

}  // namespace quantrain
