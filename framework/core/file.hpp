#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// Tests whether write_file(path) can succeed: creates a file in the same folder and removes it.
/// Programs call this before they compute what they will write.
/// Throws: DataError naming the path and the reason. A path that contains a zero byte is refused,
/// here and by all functions below. Paths are UTF-8; on POSIX systems, they may have any bytes.
void check_writable(const std::string& path);

/// Writes the parts one after the other to a temporary file in the same folder, flushes it to the
/// disk and renames it to path. So path always holds either the old file or the whole new one. The
/// new file keeps the old one's permissions. A symbolic link is followed. If the system supports
/// unnamed files (Linux's O_TMPFILE), the temporary file gets its name only when it is complete.
/// Otherwise, a process that is killed leaves "<path>.tmp<numbers>", which the next write to path
/// removes. Exceeding a file size limit is an error, not a signal. On Windows before 10, a file
/// that another program has open is not replaced, which is an error.
/// Throws: DataError naming the path and the reason; the temporary file is removed.
void write_file(const std::string& path, std::span<const std::span<const uint8_t>> parts);
void write_file(const std::string& path, std::string_view text);

/// Names of a folder's entries, including hidden ones, sorted by their bytes.
/// Throws: DataError naming the folder and the reason.
std::vector<std::string> names_in(const std::string& folder);

/// A file that is read from start to end. Its size is known from the beginning, so that a reader
/// can compare the header with this size before it reads the rest.
class InputFile {
 public:
  /// Throws: DataError naming the path if it is missing, is not a regular file or cannot be opened.
  /// Never blocks, not even on a named pipe.
  explicit InputFile(const std::string& path);

  /// Bytes left to read, if the file still has the size that it had when it was opened.
  int64_t left() const { return left_; }
  /// Fills `out`, or only the start of it if the file ends. Returns the number of bytes read.
  /// Throws: DataError naming the path if the file cannot be read; DataError if this object was
  /// moved from.
  size_t read(std::span<uint8_t> out);
  /// Goes back to the start.   Throws: DataError like read().
  void rewind();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::FILE* file() const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int64_t size_ = 0;
  int64_t left_ = 0;
};

}  // namespace quantrain
