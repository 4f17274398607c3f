#include "framework/core/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "framework/core/error.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "file";

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw DataError(kWhere, path, ": ", what, ": ", std::strerror(errno));
}

/// An open file.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }
  /// Returns false and sets errno if it fails.
  bool close() { return descriptor_ < 0 || ::close(release()) == 0; }

 private:
  int descriptor_;
};

// The system would take a zero byte for the end of the path and use another file.
void check_path(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    throw DataError(kWhere, path.c_str(), ": the path has a zero byte after this part");
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Follows path if it is a symbolic link, because a rename would replace the link itself.
std::string resolve(const std::string& path) {
  if (path.empty()) throw DataError(kWhere, "the path to write to is empty");
  check_path(path);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) fail(path, "cannot be written");
    // A link may point to a file that does not exist yet. (A cycle of links gives ELOOP, not
    // ENOENT.)
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    return resolve((std::filesystem::path(path).parent_path() / target).string());
  }
  // Renaming a file to /dev/null would replace the device.
  if (!S_ISREG(info.st_mode)) throw DataError(kWhere, path, ": is not a regular file");
  if (::access(path.c_str(), W_OK) != 0) fail(path, "cannot be written");
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) fail(path, "cannot be resolved");
  return real.get();
}

// In a sticky folder, only the owner of a file or of the folder may replace the file by a rename.
void check_replaceable(const std::string& target) {
  struct stat file {};
  struct stat folder {};
  if (::stat(target.c_str(), &file) != 0 || ::stat(folder_of(target).c_str(), &folder) != 0) return;
  const uid_t user = ::geteuid();
  if ((folder.st_mode & S_ISVTX) == 0 || user == 0 || user == file.st_uid || user == folder.st_uid)
    return;
  throw DataError(
      kWhere,
      target,
      ": cannot be replaced: the file belongs to another user, and in this sticky folder only "
      "the owner of the file or of the folder may replace it");
}

// Removes the temporary files of processes that were killed while they wrote to target. A process
// that still runs holds a lock on its file.
void remove_leftovers(const std::string& target) {
  const std::string folder = folder_of(target);
  const std::string prefix = target.substr(target.rfind('/') + 1) + ".tmp";
  const auto is_number = [](std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  std::vector<std::string> names;
  try {
    names = names_in(folder);
  } catch (const DataError&) {
    return;  // the leftovers stay, but the write goes on
  }
  for (const std::string& entry : names) {
    const std::string_view name = entry;
    if (!name.starts_with(prefix)) continue;
    const std::string_view numbers = name.substr(prefix.size());
    const size_t dash = std::min(numbers.find('-'), numbers.size());
    if (!is_number(numbers.substr(0, dash)) ||
        !is_number(numbers.substr(std::min(dash + 1, numbers.size()))))
      continue;
    const std::string path = folder + '/' + entry;
    const Descriptor left(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (left.get() >= 0 && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  }
}

// A write beyond the file size limit raises SIGXFSZ, which would kill the process. While this
// object lives, the thread blocks the signal, and write() fails instead.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &old_);
    waited_before_ = is_waiting();
  }
  ~NoFileSizeSignal() {
    int number = 0;
    if (!waited_before_ && is_waiting()) ::sigwait(&signal_, &number);
    ::pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  static bool is_waiting() {
    sigset_t waiting;
    ::sigpending(&waiting);
    return ::sigismember(&waiting, SIGXFSZ) == 1;
  }

  sigset_t signal_{};
  sigset_t old_{};
  bool waited_before_ = false;
};

// A new file in the folder of its target. The destructor removes it unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string target) : target_(std::move(target)) {
    check_replaceable(target_);
    remove_leftovers(target_);
    struct stat old {};
    const bool replaces = ::stat(target_.c_str(), &old) == 0;
    const mode_t mode = replaces ? old.st_mode & 0777 : 0666;
    if (!make_nameless(mode)) make_named(mode);
    // The umask may have removed some of these bits when the file was created. If the file system
    // cannot set them now, the new file just has fewer permissions.
    if (replaces) static_cast<void>(::fchmod(file_.get(), mode));
  }
  ~TemporaryFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::span<const uint8_t> bytes) {
    const NoFileSizeSignal no_signal;
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(target_, "cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  void rename() {
    if (::fsync(file_.get()) != 0) fail(target_, "cannot be flushed to the disk");
    if (name_.empty()) give_name();
    if (std::rename(name_.c_str(), target_.c_str()) != 0)
      fail(target_, "the temporary file cannot be renamed to this path");
    name_.clear();
    if (!file_.close()) fail(target_, "cannot be closed");
    // The new name must reach the disk too. Errors are ignored: some file systems cannot do this.
    const Descriptor folder(::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() >= 0) ::fsync(folder.get());
  }

 private:
  std::string next_name() const {
    static std::atomic<int> number{0};
    return target_ + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  }
  std::string own_link() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

  // Creates a file without a name. If the process dies, the file disappears.
  bool make_nameless(mode_t mode) {
#if defined(O_TMPFILE)
    file_ = Descriptor(::open(folder_of(target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
    if (file_.get() < 0) return false;
    // give_name() needs own_link(), which exists only if /proc is mounted. The file is locked
    // before it has a name, so that no other process can remove it as a leftover.
    if (::access(own_link().c_str(), F_OK) == 0 && ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0)
      return true;
    file_.close();
#else
    static_cast<void>(mode);
#endif
    return false;
  }

  void make_named(mode_t mode) {
    for (;;) {
      // A process with the same id in another container may have taken the name.
      do {
        name_ = next_name();
        file_ = Descriptor(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
      } while (file_.get() < 0 && errno == EEXIST);
      if (file_.get() < 0) {
        name_.clear();
        fail(target_, "no file can be made in its folder");
      }
      // Before the lock was taken, another process may have removed the file as a leftover. On a
      // file system without locks this cannot happen, because a process removes only files that it
      // can lock.
      struct stat info {};
      const bool locked = ::flock(file_.get(), LOCK_EX) == 0;
      if (!locked || (::fstat(file_.get(), &info) == 0 && info.st_nlink > 0)) return;
    }
  }

  void give_name() {
    for (;;) {
      std::string name = next_name();
      if (::linkat(AT_FDCWD, own_link().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        name_ = std::move(name);
        return;
      }
      if (errno != EEXIST) fail(target_, "cannot be given a name");
    }
  }

  std::string target_;
  std::string name_;
  Descriptor file_;
};

}  // namespace

void check_writable(const std::string& path) { const TemporaryFile probe(resolve(path)); }

void write_file(const std::string& path, std::span<const std::span<const uint8_t>> parts) {
  TemporaryFile file(resolve(path));
  for (const std::span<const uint8_t> part : parts) file.write(part);
  file.rename();
}

void write_file(const std::string& path, std::string_view text) {
  const std::span<const uint8_t> parts[] = {
      {reinterpret_cast<const uint8_t*>(text.data()), text.size()}};
  write_file(path, parts);
}

// Does not use std::filesystem, whose iterator ends the process if it has no memory for a path.
std::vector<std::string> names_in(const std::string& folder) {
  check_path(folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (entries == nullptr) fail(folder, "cannot be listed");
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) fail(folder, "cannot be listed");
  std::sort(names.begin(), names.end());
  return names;
}

InputFile::InputFile(const std::string& path) : path_(path) {
  check_path(path);
  // The checks use the open file, because another process may meanwhile replace the file at path.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot be opened");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail(path, "cannot be opened");
  if (!S_ISREG(info.st_mode)) throw DataError(kWhere, path, ": is not a regular file");
  file_.reset(::fdopen(file.get(), "rb"));
  if (file_ == nullptr) fail(path, "cannot be opened");
  file.release();
  size_ = left_ = info.st_size;
}

std::FILE* InputFile::file() const {
  if (file_ == nullptr)
    throw DataError(kWhere, "this InputFile was moved into another one: read from that one");
  return file_.get();
}

void InputFile::rewind() {
  if (std::fseek(file(), 0, SEEK_SET) != 0) fail(path_, "cannot be read");
  left_ = size_;
}

size_t InputFile::read(std::span<uint8_t> out) {
  const size_t wanted = std::min(out.size(), static_cast<size_t>(left_));
  const size_t count = std::fread(out.data(), 1, wanted, file());
  if (count < wanted && std::ferror(file()) != 0) fail(path_, "cannot be read");
  // 0 if the file was truncated after it was opened.
  left_ = count < wanted ? 0 : left_ - static_cast<int64_t>(count);
  return count;
}

}  // namespace quantrain
