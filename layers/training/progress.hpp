#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace quantrain {

/// Shows the progress of one pass over the training samples on standard output. On a terminal,
/// draws a bar with loss, rate and time left, and redraws it in place. Otherwise prints one line at
/// the end of the pass.
class Progress {
 public:
  /// label: the start of the line, such as "float epoch 1/3"; empty: print nothing.
  /// samples: number of samples in the whole pass.
  /// seconds: if the pass was interrupted and resumed, its duration before the interruption;
  /// otherwise 0.
  Progress(std::string label, int64_t samples, double seconds = 0.0);
  ~Progress();  ///< ends the line if an error interrupted the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Adds samples that were trained on, with the sum of their losses.
  void step(int64_t samples, double loss_sum);
  void stop();  ///< ends the pass: what follows, such as an evaluation, is not part of seconds()
  /// Prints the last line. `more` follows the loss, such as "accuracy 0.9100 (best)".
  void finish(const std::string& more = {});
  double seconds() const;  ///< duration of the pass so far

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last, const std::string& more);

  std::string label_;
  int64_t total_;
  int64_t done_ = 0;
  double loss_sum_ = 0.0;
  bool on_terminal_;
  bool line_open_ = false;
  Clock::time_point drawn_;
  Clock::time_point start_;
  std::optional<Clock::time_point> stop_;
};

/// Prints a line on standard output.
void print_progress(const std::string& line);

}  // namespace quantrain
