#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/training/epoch_report.hpp"

namespace quantrain {

/// The log of a run: a line of JSON for each epoch (FitOptions::log). A line costs the same in the
/// first epoch and in the last.
class EpochLog {
 public:
  /// Throws: DataError if the file cannot be written.
  explicit EpochLog(std::string path);

  /// The run continues after `epochs` epochs: keeps that many lines of the file. If the file does
  /// not hold them, it gets a line for each of the reports, which end with the last epoch's.
  /// Throws: DataError if the file cannot be written.
  void resume(const std::vector<EpochReport>& reports, int64_t epochs);
  /// Appends a line. The first line of a run that was not resumed replaces the file.
  /// Throws: DataError if the line cannot be written whole. The file then stays as it was.
  void add(const EpochReport& report);

 private:
  std::string path_;
  bool appends_ = false;
};

}  // namespace quantrain
