#include "framework/core/processors.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>

#include "framework/core/system/process.hpp"

namespace quantrain {
namespace {

/// The first 4 kB of a file; empty if it cannot be read. Files of the kernel have no size.
std::string start_of(const std::string& path) {
  std::string text(4096, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  text.resize(file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file));
  if (file != nullptr) std::fclose(file);
  return text;
}

/// The number that starts a text; nothing for "max" and the like.
std::optional<double> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || value <= 0) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> ratio(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

/// Of one group, in either version.
std::optional<double> quota_of(const std::string& folder, bool is_v2) {
  if (!is_v2) {
    return ratio(number(start_of(folder + "/cpu.cfs_quota_us")),
                 number(start_of(folder + "/cpu.cfs_period_us")));
  }
  const std::string text = start_of(folder + "/cpu.max");  // "quota period" or "max period"
  const size_t space = std::min(text.find(' '), text.size());
  return ratio(number(text),
               number(std::string_view(text).substr(std::min(space + 1, text.size()))));
}

/// A line of /proc/self/cgroup: "0::/path" in version 2, "4:cpu,cpuacct:/path" in version 1.
struct Group {
  bool is_v2 = false;
  std::string path;
};
std::optional<Group> group_of(std::string_view line) {
  const size_t first = line.find(':');
  const size_t second = line.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const std::string controllers =
      ',' + std::string(line.substr(first + 1, second - first - 1)) + ',';
  const bool is_v2 = controllers == ",,";
  if (!is_v2 && controllers.find(",cpu,") == std::string::npos) return std::nullopt;
  return Group{is_v2, std::string(line.substr(second + 1))};
}

}  // namespace

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  const std::string text = start_of(root + "/proc/self/cgroup");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::optional<Group> group = group_of(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    if (!group) continue;
    const std::string sys = root + "/sys/fs/cgroup";
    // In a container, the group may be mounted as the root of all groups.
    for (const char* const mount : {"", "/unified", "/cpu", "/cpu,cpuacct", "/cpuacct,cpu"}) {
      std::string path = group->path;
      for (bool more = true; more;) {
        more = !path.empty();
        const std::optional<double> quota = quota_of(sys + mount + path, group->is_v2);
        if (quota) least = std::min(least.value_or(*quota), *quota);
        const size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
      }
    }
  }
  return least;
}

int usable_processors(const std::string& root) {
  int count = system::processors_of_mask();
  if (count == 0) count = static_cast<int>(std::thread::hardware_concurrency());
  if (const std::optional<double> quota = cpu_quota(root))
    count = static_cast<int>(std::min<double>(count, *quota));
  return std::max(count, 1);
}

}  // namespace quantrain
