#include "layers/training/epoch_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"

namespace quantrain {
namespace {

[[noreturn]] void fail(const std::string& path, int number) {
  throw DataError("fit", path, ": the log cannot be continued: ", std::strerror(number));
}

/// Appends the text to a file and flushes it. If that fails, removes what was written and returns
/// the error's number; otherwise returns 0.
int append(int file, std::string_view text) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return errno;
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (text.empty() && ::fsync(file) == 0) return 0;
  const int number = errno;
  return ::ftruncate(file, info.st_size) == 0 ? number : errno;
}

/// The first n lines of a file; empty if the file has fewer, or cannot be read.
std::string first_lines(const std::string& path, int64_t n) {
  try {
    InputFile file(path);
    std::string text(static_cast<size_t>(file.left()), '\0');
    text.resize(file.read({reinterpret_cast<uint8_t*>(text.data()), text.size()}));
    size_t end = 0;
    for (; n > 0; --n) {
      const size_t line = text.find('\n', end);
      if (line == std::string::npos) return {};
      end = line + 1;
    }
    text.resize(end);
    return text;
  } catch (const DataError&) {
    return {};
  }
}

}  // namespace

EpochLog::EpochLog(std::string path) : path_(std::move(path)) { check_writable(path_); }

void EpochLog::resume(const std::vector<EpochReport>& reports, int64_t epochs) {
  if (reports.empty()) return;
  std::string text = first_lines(path_, epochs);
  if (!text.ends_with(to_json(reports.back()) + '\n')) {
    text.clear();
    for (const EpochReport& report : reports) text += to_json(report) + '\n';
  }
  write_file(path_, text);
  appends_ = true;
}

void EpochLog::add(const EpochReport& report) {
  const std::string line = to_json(report) + '\n';
  if (!appends_) {
    write_file(path_, line);
    appends_ = true;
    return;
  }
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail(path_, errno);
  const int number = append(file, line);
  ::close(file);
  if (number != 0) fail(path_, number);
}

}  // namespace quantrain
