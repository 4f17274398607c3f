#include "layers/training/epoch_log.hpp"

#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/system/file.hpp"

namespace quantrain {
namespace {

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
  if (!system::append(path_, line))
    throw DataError("fit", path_, ": the log cannot be continued: ", system::last_error());
}

}  // namespace quantrain
