#include "framework/autograd/profile.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "framework/core/text_table.hpp"

namespace quantrain {
namespace {

thread_local Profile* running = nullptr;

}  // namespace

Profile::Profile() : outer_(std::exchange(running, this)) {}

Profile::~Profile() {
  if (running == this) {
    running = outer_;
    if (outer_ != nullptr) outer_->last_ = Clock::now();
  }
  // If a Profile within this one still runs, it now belongs to the one around this.
  for (Profile* inner = running; inner != nullptr; inner = inner->outer_) {
    if (inner->outer_ == this) inner->outer_ = outer_;
  }
}

std::vector<Profile::Entry> Profile::entries() const {
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return a.seconds > b.seconds;
  });
  return sorted;
}

void Profile::mark(std::string_view operation, std::string_view part) {
  if (running == nullptr) return;
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - running->last_).count();
  std::vector<Entry>& entries = running->entries_;
  const std::string name = std::string(operation).append(part);
  auto entry = std::find_if(
      entries.begin(), entries.end(), [&](const Entry& e) { return e.operation == name; });
  if (entry == entries.end()) entry = entries.insert(entry, {name, 0, 0.0});
  ++entry->calls;
  entry->seconds += seconds;
  running->last_ = Clock::now();
}

std::ostream& operator<<(std::ostream& stream, const Profile& profile) {
  const std::vector<Profile::Entry> entries = profile.entries();
  double total = 0.0;
  for (const Profile::Entry& entry : entries) total += entry.seconds;
  TextTable table("lrrr");
  table.add({"operation", "calls", "ms", "share"});
  for (const Profile::Entry& entry : entries) {
    table.add({entry.operation,
               grouped(entry.calls),
               decimals(1000.0 * entry.seconds, 3),
               decimals(total > 0.0 ? 100.0 * entry.seconds / total : 0.0, 1) + " %"});
  }
  return stream << table;
}

}  // namespace quantrain
