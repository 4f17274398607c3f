#include "framework/core/processors.hpp"

#include <algorithm>
#include <filesystem>

#include "framework/core/file.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

/// A folder with the files of proc and sys.
class FakeRoot {
 public:
  explicit FakeRoot(const std::string& groups) { write("proc/self/cgroup", groups); }
  FakeRoot& write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    write_file(path.string(), text);
    return *this;
  }
  std::optional<double> quota() const { return cpu_quota(folder_.path()); }
  int usable() const { return usable_processors(folder_.path()); }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("the quota of version 2 is the least of a group and those above", "[core][processors]") {
  FakeRoot root("0::/user/job\n");
  CHECK_FALSE(root.quota().has_value());
  root.write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  CHECK_FALSE(root.quota().has_value());
  root.write("sys/fs/cgroup/user/job/cpu.max", "350000 100000\n");
  CHECK(root.quota() == 3.5);
  root.write("sys/fs/cgroup/user/cpu.max", "20000 10000\n");
  CHECK(root.quota() == 2.0);
  root.write("sys/fs/cgroup/other/cpu.max", "10000 100000\n");
  CHECK(root.quota() == 2.0);
  // A container sees its own group as the root.
  CHECK(FakeRoot("0::/\n").write("sys/fs/cgroup/cpu.max", "50000 100000\n").quota() == 0.5);
}

TEST_CASE("the quota of version 1 belongs to the controller cpu", "[core][processors]") {
  const std::string groups = "5:memory:/m\n4:cpu,cpuacct:/box/a\n3:cpuset:/box\n0::/\n";
  FakeRoot root(groups);
  const auto set = [&](const std::string& folder, const char* quota, const char* period) {
    root.write(folder + "/cpu.cfs_quota_us", quota).write(folder + "/cpu.cfs_period_us", period);
  };
  set("sys/fs/cgroup/cpu,cpuacct/box/a", "-1\n", "100000\n");
  CHECK_FALSE(root.quota().has_value());
  set("sys/fs/cgroup/cpu,cpuacct/box/a", "150000\n", "100000\n");
  CHECK(root.quota() == 1.5);
  set("sys/fs/cgroup/memory/m", "1000\n", "100000\n");
  CHECK(root.quota() == 1.5);
  // In a container, the path is the host's, and the group is mounted as the root.
  CHECK(FakeRoot("4:cpu:/docker/1234\n")
            .write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000")
            .write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
            .quota() == 3.0);
}

TEST_CASE("whole processors of a quota are usable, at least one", "[core][processors]") {
  FakeRoot root("0::/\n");
  const int all = root.usable();
  for (const char* const one : {"199999 100000", "100000 100000", "1000 100000"})
    CHECK(root.write("sys/fs/cgroup/cpu.max", one).usable() == 1);
  CHECK(root.write("sys/fs/cgroup/cpu.max", "250000 100000").usable() == std::min(all, 2));
  CHECK(root.write("sys/fs/cgroup/cpu.max", "999900000 100000").usable() == all);
}

TEST_CASE("files of control groups that say nothing set no quota", "[core][processors]") {
  for (const char* const groups : {"", "\n", "nonsense", "0:", "0::", "::::", "0::/a"}) {
    for (const char* const text : {"", "100000", "100000 ", "a b", "0 100000", "5 -5", "5 0"}) {
      FakeRoot root(groups);
      root.write("sys/fs/cgroup/cpu.max", text).write("sys/fs/cgroup/a/cpu.max", text);
      CHECK_FALSE(root.quota().has_value());
    }
  }
  CHECK_FALSE(cpu_quota("/nowhere").has_value());
}

TEST_CASE("a process may use at least one processor", "[core][processors]") {
  CHECK(usable_processors() >= 1);
}

}  // namespace quantrain
