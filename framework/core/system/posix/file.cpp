#include "framework/core/system/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "framework/core/error.hpp"

namespace quantrain::system {
namespace {

/// Keeps errno, which says why an earlier call failed, while destructors call the system.
class KeptError {
 public:
  KeptError() = default;
  ~KeptError() { errno = number_; }
  KeptError(const KeptError&) = delete;
  KeptError& operator=(const KeptError&) = delete;

 private:
  int number_ = errno;
};

int descriptor(const File& file) { return static_cast<int>(file.get()); }

// In a sticky folder, only the owner of a file or of the folder may replace the file by a rename.
void check_replaceable(const std::string& target) {
  struct stat file {};
  struct stat folder {};
  if (::stat(target.c_str(), &file) != 0 || ::stat(folder_of(target).c_str(), &folder) != 0) return;
  const uid_t user = ::geteuid();
  if ((folder.st_mode & S_ISVTX) == 0 || user == 0 || user == file.st_uid || user == folder.st_uid)
    return;
  throw DataError(
      "file",
      target,
      ": cannot be replaced: the file belongs to another user, and in this sticky folder only "
      "the owner of the file or of the folder may replace it");
}

/// Permissions of a new file.
struct Permissions {
  explicit Permissions(const std::string& target) {
    struct stat old {};
    replaces = ::stat(target.c_str(), &old) == 0;
    if (replaces) mode = old.st_mode & 0777;
  }
  // The umask may have removed some of these bits when the file was created. If the file system
  // cannot set them now, the new file just has fewer permissions.
  void complete(const File& file) const {
    if (replaces) static_cast<void>(::fchmod(descriptor(file), mode));
  }
  bool replaces = false;
  mode_t mode = 0666;
};

// A write beyond the file size limit raises SIGXFSZ, which would kill the process. While this
// object lives, the thread blocks the signal, and the write fails instead.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &old_);
    waited_before_ = is_waiting();
  }
  ~NoFileSizeSignal() {
    const KeptError kept;
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

bool write_all(int file, const uint8_t* bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return false;
    bytes += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

using CString = std::unique_ptr<char, decltype(&std::free)>;
CString real_path(const std::string& path) {
  return {::realpath(path.c_str(), nullptr), &std::free};
}

struct Closing {
  void operator()(DIR* folder) const {
    const KeptError kept;
    ::closedir(folder);
  }
};

std::string own_link(const File& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

}  // namespace

std::string last_error() { return std::strerror(errno); }

File::~File() {
  const KeptError kept;
  close();
}

bool File::close() { return !is_open() || ::close(static_cast<int>(release())) == 0; }

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string resolve(const std::string& path) {
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
  if (!S_ISREG(info.st_mode)) throw DataError("file", path, ": is not a regular file");
  if (::access(path.c_str(), W_OK) != 0) fail(path, "cannot be written");
  const CString real = real_path(path);
  if (real == nullptr) fail(path, "cannot be resolved");
  std::string target = real.get();
  check_replaceable(target);
  return target;
}

File create_nameless(const std::string& target) {
#if defined(O_TMPFILE)
  const Permissions permissions(target);
  File file(::open(folder_of(target).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, permissions.mode));
  // link() needs own_link(), which exists only if /proc is mounted. The file is locked before it
  // has a name, so that no other process can remove it as a leftover.
  if (file.is_open() && ::access(own_link(file).c_str(), F_OK) == 0 &&
      ::flock(descriptor(file), LOCK_EX | LOCK_NB) == 0) {
    permissions.complete(file);
    return file;
  }
#else
  static_cast<void>(target);
#endif
  return File();
}

File create(const std::string& name, const std::string& target) {
  const Permissions permissions(target);
  File file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions.mode));
  if (!file.is_open()) return file;
  // Before the lock was taken, another process may have removed the file as a leftover. On a file
  // system without locks this cannot happen, because a process removes only files that it can lock.
  struct stat info {};
  const bool is_locked = ::flock(descriptor(file), LOCK_EX) == 0;
  if (is_locked && (::fstat(descriptor(file), &info) != 0 || info.st_nlink == 0)) {
    errno = EEXIST;
    return File();
  }
  permissions.complete(file);
  return file;
}

bool is_name_taken() { return errno == EEXIST; }

bool link(const File& file, const std::string& name) {
  return ::linkat(AT_FDCWD, own_link(file).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool write(const File& file, std::span<const uint8_t> bytes) {
  const NoFileSizeSignal no_signal;
  return write_all(descriptor(file), bytes.data(), bytes.size());
}

bool flush(const File& file) { return ::fsync(descriptor(file)) == 0; }

bool replace(const File&, const std::string& name, const std::string& target) {
  return std::rename(name.c_str(), target.c_str()) == 0;
}

void flush_names(const std::string& folder) {
  const File opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) ::fsync(descriptor(opened));
}

void discard(File& file, const std::string& name) {
  ::unlink(name.c_str());
  file.close();
}

void remove_unless_held(const std::string& name) {
  const File left(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (left.is_open() && ::fstat(descriptor(left), &info) == 0 && S_ISREG(info.st_mode) &&
      ::flock(descriptor(left), LOCK_EX | LOCK_NB) == 0)
    ::unlink(name.c_str());
}

bool append(const std::string& path, std::string_view text) {
  const NoFileSizeSignal no_signal;
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC;
  File file(::open(path.c_str(), kFlags));
  const bool is_missing = !file.is_open() && errno == ENOENT;
  if (is_missing) file = File(::open(path.c_str(), kFlags | O_CREAT, 0666));
  struct stat info {};
  if (!file.is_open() || ::fstat(descriptor(file), &info) != 0) return false;
  if (write_all(descriptor(file), reinterpret_cast<const uint8_t*>(text.data()), text.size()) &&
      flush(file))
    return true;
  const KeptError kept;
  // If it was missing but is not empty, another process made it meanwhile.
  if (!is_missing || info.st_size > 0) {
    static_cast<void>(!::ftruncate(descriptor(file), info.st_size));
  } else if (const CString real = real_path(path)) {  // the path may be a link to the missing file
    ::unlink(real.get());
  }
  return false;
}

// Does not use std::filesystem, whose iterator ends the process if it has no memory for a path.
bool list(const std::string& folder, std::vector<std::string>& names) {
  const std::unique_ptr<DIR, Closing> entries(::opendir(folder.c_str()));
  if (entries == nullptr) return false;
  errno = 0;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  return errno == 0;
}

Input open_to_read(const std::string& path) {
  // The checks use the open file, because another process may meanwhile replace the file at path.
  File file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Input input;
  struct stat info {};
  if (!file.is_open() || ::fstat(descriptor(file), &info) != 0) return input;
  input.is_regular = S_ISREG(info.st_mode);
  input.size = info.st_size;
  if (input.is_regular) input.file = ::fdopen(descriptor(file), "rb");
  if (input.file != nullptr) file.release();
  return input;
}

Inside open_inside(const std::string& folder, const std::vector<std::string>& parts) {
  Inside inside;
  File at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; at.is_open() && i < parts.size(); ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    at = File(::openat(descriptor(at), parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  struct stat info {};
  inside.is_link = !at.is_open() && errno == ELOOP;
  inside.is_regular = at.is_open() && ::fstat(descriptor(at), &info) == 0 && S_ISREG(info.st_mode);
  inside.size = info.st_size;
  inside.id = {info.st_dev, info.st_ino};
  inside.file = std::move(at);
  return inside;
}

bool read_at(const File& file, int64_t position, std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t n = ::pread(descriptor(file), out.data(), out.size(), position);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    position += n;
    out = out.subspan(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace quantrain::system
