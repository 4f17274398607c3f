#include "framework/core/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "framework/core/error.hpp"
#include "framework/core/system/file.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::Child;
using test::in_child;
using test::TemporaryFolder;
using test::text_of;

// While this object lives, no file of this process can grow beyond `bytes`. write() writes up to
// the limit; the next write() raises SIGXFSZ and fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &old_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
};

}  // namespace

TEST_CASE("devices and paths below files are not writable", "[core][file]") {
  const TemporaryFolder folder;
  QUANTRAIN_CHECK_ERROR(check_writable("/dev/null"), DataError, "/dev/null: is not a regular file");
  write_file(folder / "file", "text");
  QUANTRAIN_CHECK_ERROR(
      check_writable(folder / "file/a"), DataError, "file/a: cannot be written: Not a directory");
  CHECK(folder.files() == 1);
}

TEST_CASE("a write that fails half way leaves the old file and nothing else", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  const Child child = in_child([&]() -> std::string {
    const FileSizeLimit limit(1000);
    write_file(folder / "a", std::string(5000, 'x'));
    return "written";
  });
  CHECK(child.signal == 0);
  CHECK(child.text.find("/a: cannot be written: File too large") != std::string::npos);
  CHECK(text_of(folder / "a") == "old");
  CHECK(folder.files() == 1);
  // write_file() blocks the signal only for its own write; later writes raise it as before.
  const Child later = in_child([&]() -> std::string {
    const FileSizeLimit limit(1000);
    CHECK_THROWS_AS(write_file(folder / "a", std::string(5000, 'x')), DataError);
    const int file = ::open((folder / "b").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string text(5000, 'x');
    static_cast<void>(!::write(file, text.data(), text.size()));
    static_cast<void>(!::write(file, text.data(), text.size()));
    return "alive";
  });
  CHECK(later.signal == SIGXFSZ);
}

TEST_CASE("an append that fails half way leaves the file as it was, or missing", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  std::filesystem::create_symlink("missing", folder / "link");
  const auto append = [](const std::string& path, const std::string& text) {
    return in_child([&]() -> std::string {
      const FileSizeLimit limit(1000);
      return system::append(path, text) ? "appended" : system::last_error();
    });
  };
  for (const char* const name : {"a", "b", "link"}) {
    CAPTURE(name);
    const Child child = append(folder / name, std::string(5000, 'x'));
    CHECK(child.signal == 0);
    CHECK(child.text == "File too large");
  }
  CHECK(text_of(folder / "a") == "old");
  CHECK(folder.files() == 2);
  CHECK(std::filesystem::is_symlink(folder / "link"));
  for (const char* const name : {"a", "b", "link"})
    CHECK(append(folder / name, "new").text == "appended");
  CHECK(text_of(folder / "a") == "oldnew");
  CHECK(text_of(folder / "b") == "new");
  CHECK(text_of(folder / "missing") == "new");
}

TEST_CASE("a temporary name that is taken is not used", "[core][file]") {
  const TemporaryFolder folder;
  const Child child = in_child([&]() -> std::string {
    // One of these symbolic links has the next temporary name. write_file() removes temporary files
    // that dead processes left, but never symbolic links.
    const std::string first = folder / "a.tmp" + std::to_string(::getpid()) + '-';
    for (int number = 1; number <= 5000; ++number)
      std::filesystem::create_symlink("nowhere", first + std::to_string(number));
    write_file(folder / "a", "text");
    return "written";
  });
  CHECK(child.text == "written");
  CHECK(text_of(folder / "a") == "text");
  CHECK(folder.files() == 5001);
}

TEST_CASE("a name without a folder is a file in the current folder", "[core][file]") {
  const TemporaryFolder folder;
  const Child child = in_child([&]() -> std::string {
    std::filesystem::current_path(folder.path());
    write_file("a", "text");
    return "written";
  });
  CHECK(child.text == "written");
  CHECK(text_of(folder / "a") == "text");
}

TEST_CASE("a signal that is pending before a write is still pending afterwards", "[core][file]") {
  const TemporaryFolder folder;
  const Child child = in_child([&]() -> std::string {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    ::raise(SIGXFSZ);
    write_file(folder / "a", "text");
    sigset_t waiting;
    ::sigpending(&waiting);
    return ::sigismember(&waiting, SIGXFSZ) == 1 ? "waits" : "is gone";
  });
  CHECK(child.text == "waits");
}

TEST_CASE("a file that is replaced keeps its permissions", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  for (const auto mode : {0600, 0666, 0750}) {
    const auto permissions = static_cast<std::filesystem::perms>(mode);
    std::filesystem::permissions(folder / "a", permissions);
    write_file(folder / "a", "new");
    CHECK(std::filesystem::status(folder / "a").permissions() == permissions);
  }
}

TEST_CASE("writing to a symbolic link writes the file that it points to", "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  std::filesystem::create_symlink(folder / "file", folder / "link");
  write_file(folder / "link", "new");
  CHECK(text_of(folder / "file") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("writing to a dangling symbolic link creates the file that it points to",
          "[core][file]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "other");
  std::filesystem::create_symlink("other/file", folder / "link");
  std::filesystem::create_symlink("link", folder / "link to link");
  check_writable(folder / "link to link");
  write_file(folder / "link to link", "new");
  CHECK(text_of(folder / "other/file") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "link to link"));
  std::filesystem::create_symlink("circle", folder / "circle");
  QUANTRAIN_CHECK_ERROR(write_file(folder / "circle", "text"), DataError, "cannot be written");
}

TEST_CASE("the next write removes the temporary files of dead processes", "[core][file]") {
  const TemporaryFolder folder;
  for (int number = 1; number <= 64; ++number)
    test::write_bytes(folder / "a.tmp" + std::to_string(::getpid()) + '-' + std::to_string(number),
                      {});
  // These stay: a symbolic link, a pipe, a folder, temporary files of other targets, and names that
  // write_file() never uses.
  std::filesystem::create_symlink("nowhere", folder / "a.tmp1-9");
  REQUIRE(::mkfifo((folder / "a.tmp1-8").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "a.tmp1-6");
  const std::vector<std::string> others = {
      "b.tmp1-1", "a.tmp", "a.tmp1", "a.tmp1-", "a.tmp-1", "a.tmp1-1x", "a.tmp1-1-1", "aa.tmp1-1"};
  for (const std::string& name : others) test::write_bytes(folder / name, {});
  // The temporary file of a living process, which holds a lock on it.
  const std::string living = folder / "a.tmp1-7";
  const int lock = ::open(living.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  write_file(folder / "a", "text");
  CHECK(text_of(folder / "a") == "text");
  CHECK(folder.files() == 5 + std::ssize(others));
  CHECK(std::filesystem::exists(living));
  ::close(lock);
  check_writable(folder / "a");
  CHECK_FALSE(std::filesystem::exists(living));
}

TEST_CASE("a killed write leaves the old or the new file, and the next write cleans up",
          "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  for (int i = 0; i < 20; ++i) {
    const Child child = in_child([&, i]() -> std::string {
      // A timer and no thread: under TSan, a child of a process with threads may start none.
      sigevent kill{};
      kill.sigev_notify = SIGEV_SIGNAL;
      kill.sigev_signo = SIGKILL;
      timer_t timer{};
      if (::timer_create(CLOCK_MONOTONIC, &kill, &timer) != 0) return "no timer";
      itimerspec after{};
      after.it_value.tv_nsec = 1'000'000L * i + 1;
      ::timer_settime(timer, 0, &after, nullptr);
      for (;;) write_file(folder / "a", std::string(1 << 22, 'x'));
    });
    CHECK(child.signal == SIGKILL);
  }
  const std::string text = text_of(folder / "a");
  CHECK((text == "old" || text == std::string(1 << 22, 'x')));
  // A process that dies after it has named its temporary file and before the rename leaves that
  // file behind.
  CHECK(folder.files() <= 3);
  write_file(folder / "a", "new");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that is replaced while it is opened is the old one or the new one",
          "[core][file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "s");
  write_file(folder / "b", std::string(6000, 'l'));
  std::atomic<bool> done = false;
  // Swaps the two files by renaming, as often as possible. write_file() also replaces its target by
  // a rename.
  std::thread writer([&, a = folder / "a", b = folder / "b"] {
    while (!done) ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  int whole = 0;
  for (int i = 0; i < 50000; ++i) {
    InputFile file(folder / "a");
    const bool is_short = file.left() == 1;
    std::vector<uint8_t> bytes(7000);
    const size_t read = file.read(bytes);
    whole += read == (is_short ? 1u : 6000u) && bytes[0] == (is_short ? 's' : 'l');
  }
  done = true;
  writer.join();
  CHECK(whole == 50000);
}

TEST_CASE("a pipe is refused at once, for reading and for writing", "[core][file]") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  // InputFile opens a path without blocking and then checks its type, because opening a pipe for
  // reading waits for a writer.
  const Child reader = in_child(
      [&]() -> std::string {
        InputFile file(folder / "pipe");
        return "opened";
      },
      20);
  CHECK(reader.text.find("/pipe: is not a regular file") != std::string::npos);
  QUANTRAIN_CHECK_ERROR(write_file(folder / "pipe", "text"), DataError, "is not a regular file");
}

// Needs root, because only root can give a file to another user.
TEST_CASE("check_writable refuses another user's file in a sticky folder", "[core][file]") {
  if (::geteuid() != 0) {
    WARN("not root: nothing was tested");
    return;
  }
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), static_cast<std::filesystem::perms>(01777));
  write_file(folder / "a", "root's");
  std::filesystem::permissions(folder / "a", static_cast<std::filesystem::perms>(0666));
  const Child child = in_child([&]() -> std::string {
    static_cast<void>(!::setuid(65534));
    check_writable(folder / "b");
    check_writable(folder / "a");
    return "writable";
  });
  CHECK(child.text.find("/a: cannot be replaced: the file belongs to another user, and in this") !=
        std::string::npos);
  // Three users may replace it: root, the file's owner and the folder's owner.
  check_writable(folder / "a");
  const auto replaces = [&] {
    return in_child([&]() -> std::string {
      static_cast<void>(!::setuid(65534));
      write_file(folder / "a", "new");
      return "written";
    });
  };
  REQUIRE(::chown((folder / "a").c_str(), 65534, 65534) == 0);
  CHECK(replaces().text == "written");
  REQUIRE(::chown((folder / "a").c_str(), 0, 0) == 0);
  std::filesystem::permissions(folder / "a", static_cast<std::filesystem::perms>(0666));
  REQUIRE(::chown(folder.path().c_str(), 65534, 65534) == 0);
  CHECK(replaces().text == "written");
  check_writable("/quantrain");  // a file in the root folder
}

}  // namespace quantrain
