#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// Tests that write_file(path) can succeed, by making and removing a file in the same folder: for
/// programs to call before they compute what they are to write.
/// Throws: DataError naming the path and the reason.
void check_writable(const std::string& path);

/// Writes the parts one after the other to a temporary file in the same folder, flushes it to the
/// disk and renames it to path: what is there is the old file or the whole new one, with the old
/// one's permissions. A symbolic link is followed. The temporary file has no name until it is whole
/// where the system has such files (Linux's O_TMPFILE); elsewhere a process that is killed leaves
/// "<path>.tmp<numbers>", which the next write to path removes. A file size limit is an error, not
/// a signal.
/// Throws: DataError naming the path and the reason; the temporary file is removed.
void write_file(const std::string& path, std::span<const std::span<const uint8_t>> parts);
void write_file(const std::string& path, std::string_view text);

/// Names of what is in a folder, hidden ones too, in the order of their bytes.
/// Throws: DataError naming the folder and the reason.
std::vector<std::string> names_in(const std::string& folder);

/// A file read from its start to its end: what its header says can be held against its size before
/// the rest is read.
class InputFile {
 public:
  /// Throws: DataError naming the path if it is missing, no regular file or cannot be opened. Never
  /// waits: not for the other end of a pipe.
  explicit InputFile(const std::string& path);

  /// Bytes to come, by the size that the file had when it was opened.
  int64_t left() const { return left_; }
  /// Fills `out`, at the end as much of it as there is; returns the number of bytes.
  /// Throws: DataError naming the path if the file cannot be read.
  size_t read(std::span<uint8_t> out);
  /// Back to the start.
  void rewind();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int64_t size_ = 0;
  int64_t left_ = 0;
};

}  // namespace quantrain
