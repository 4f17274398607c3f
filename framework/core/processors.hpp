#pragma once

#include <optional>
#include <string>

namespace quantrain {

/// How many processors this process may use at once, at least 1: those of its affinity mask, or
/// fewer if cpu_quota() is smaller. A part of a processor does not count, because a process that
/// uses more than its quota is stopped for the rest of each period.
/// root: as for cpu_quota().
int usable_processors(const std::string& root = "");

/// The processor time that control groups grant this process, in processors; nothing if they set no
/// limit, or outside of Linux. The least of its group and all groups above.
/// root: the folder that holds proc and sys, for tests.
/// Source: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max),
/// Documentation/scheduler/sched-bwc.rst (cpu.cfs_quota_us, cpu.cfs_period_us of version 1)
std::optional<double> cpu_quota(const std::string& root = "");

}  // namespace quantrain
