#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Files as the operating system has them. Paths are UTF-8, or on POSIX any bytes. Where a function
// returns false or nothing, last_error() says why.
namespace quantrain::system {

/// The text of this thread's last error.
std::string last_error();
/// Throws: DataError "<path>: <what>: <last_error()>"
[[noreturn]] void fail(const std::string& path, const char* what);

/// An open file.
class File {
 public:
  using Handle = intptr_t;
  static constexpr Handle kNone = -1;

  explicit File(Handle handle = kNone) : handle_(handle) {}
  File(File&& other) noexcept : handle_(std::exchange(other.handle_, kNone)) {}
  File& operator=(File&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  /// Closes it. last_error() stays the one of an earlier call.
  ~File();

  bool is_open() const { return handle_ != kNone; }
  Handle get() const { return handle_; }
  Handle release() { return std::exchange(handle_, kNone); }
  bool close();

 private:
  Handle handle_;
};

/// The folder of a path: "." if it names none.
std::string folder_of(const std::string& path);
/// What follows the folder in a path.
std::string name_of(const std::string& path);

/// The file that a write to `path` has to replace: links are followed, because a rename would
/// replace the link itself.
/// Throws: DataError if it is no regular file, or may not be written or replaced.
std::string resolve(const std::string& path);

/// A new file beside `target` that has no name, with the permissions of `target`. If the process
/// dies, it disappears. Nothing if the system or the file system cannot do this.
File create_nameless(const std::string& target);
/// A new file that is locked as long as it is open, with the permissions of `target`. Nothing if
/// there is a file of this name.
File create(const std::string& name, const std::string& target);
/// Whether create() or link() failed because the name is taken.
bool is_name_taken();
/// Gives a nameless file a name.
bool link(const File& file, const std::string& name);
bool write(const File& file, std::span<const uint8_t> bytes);
/// Everything that was written is on the disk.
bool flush(const File& file);
/// Replaces `target` by the file `name`, which is open as `file`. At every moment, `target` is the
/// old file or the new one.
bool replace(const File& file, const std::string& name, const std::string& target);
/// The new name is on the disk, if the file system can do this.
void flush_names(const std::string& folder);
/// Closes and removes the file `name`, which is open as `file`.
void discard(File& file, const std::string& name);
/// Removes a file unless create() of a living process holds it, or it is no regular file.
void remove_unless_held(const std::string& name);

/// Appends to a file, which is made if it is missing, and flushes it. If this fails, the file stays
/// as it was, or missing.
bool append(const std::string& path, std::string_view text);

/// Names of a folder's entries, except "." and "..".
bool list(const std::string& folder, std::vector<std::string>& names);

/// A file for reading. Opening never waits, not even for a named pipe.
struct Input {
  std::FILE* file = nullptr;  ///< the caller closes it; null if it cannot be opened
  bool is_regular = true;     ///< if not, file is null
  int64_t size = 0;
};
Input open_to_read(const std::string& path);

/// A file below a folder. No part of the way there is a link.
struct Inside {
  File file;
  bool is_link = false;  ///< a part is a link, so the file is not open
  bool is_regular = false;
  int64_t size = 0;
  std::pair<uint64_t, uint64_t> id;  ///< of the file, whatever path leads there
};
Inside open_inside(const std::string& folder, const std::vector<std::string>& parts);
/// Fills `out` from this position on. Returns false also if the file ends before.
bool read_at(const File& file, int64_t position, std::span<uint8_t> out);

}  // namespace quantrain::system
