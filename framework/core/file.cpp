#include "framework/core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
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

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The file itself where path is a symbolic link: renaming over the link would replace it.
std::string resolve(const std::string& path) {
  if (path.empty()) throw DataError(kWhere, "the path to write to is empty");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) fail(path, "cannot be written");
    // A link may point to a file that is yet to be made; one that leads in a circle is no ENOENT.
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    return resolve((std::filesystem::path(path).parent_path() / target).string());
  }
  // Renaming a file over /dev/null would be the end of /dev/null.
  if (!S_ISREG(info.st_mode)) throw DataError(kWhere, path, ": is not a regular file");
  if (::access(path.c_str(), W_OK) != 0) fail(path, "cannot be written");
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) fail(path, "cannot be resolved");
  return real.get();
}

// A new file beside the one it is to become; gone with this object unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string target) : target_(std::move(target)) {
    static std::atomic<int> number{0};
    struct stat old {};
    const bool replaces = ::stat(target_.c_str(), &old) == 0;
    const mode_t mode = replaces ? old.st_mode & 0777 : 0666;
    // A process that was killed may have left one behind, and in a container had the same number.
    do {
      name_ = target_ + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(++number);
      descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) fail(target_, "no file can be made in its folder");
    // It was made with no more than these bits: a file system that cannot set the rest gives
    // nothing away.
    if (replaces) static_cast<void>(::fchmod(descriptor_, mode));
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(target_, "cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  void rename() {
    if (::fsync(descriptor_) != 0) fail(target_, "cannot be flushed to the disk");
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(target_, "cannot be closed");
    if (std::rename(name_.c_str(), target_.c_str()) != 0) fail(target_, "cannot be renamed to");
    name_.clear();
    // The new name must be on the disk too; a file system that cannot do it has no more to offer.
    const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      ::fsync(folder);
      ::close(folder);
    }
  }

 private:
  std::string target_;
  std::string name_;
  int descriptor_ = -1;
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

InputFile::InputFile(const std::string& path) : path_(path) {
  struct stat info {};
  // Opening a pipe would wait for its other end.
  if (::stat(path.c_str(), &info) != 0) fail(path, "cannot be opened");
  if (!S_ISREG(info.st_mode)) throw DataError(kWhere, path, ": is not a regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (file_ == nullptr) fail(path, "cannot be opened");
  left_ = info.st_size;
}

size_t InputFile::read(std::span<uint8_t> out) {
  const size_t wanted = std::min(out.size(), static_cast<size_t>(left_));
  const size_t count = std::fread(out.data(), 1, wanted, file_.get());
  if (count < wanted && std::ferror(file_.get()) != 0) fail(path_, "cannot be read");
  left_ = count < wanted ? 0 : left_ - static_cast<int64_t>(count);  // cut while it was read
  return count;
}

}  // namespace quantrain
