#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace quantrain {

/// One pass over the training samples on standard output: on a terminal a bar with rate, loss and
/// time left, redrawn in place; otherwise one line at its end.
class Progress {
 public:
  /// label: as in "float epoch 1/3"; empty: print nothing. samples: in the whole pass.
  /// seconds: how long the pass had run before an interruption, else 0.
  Progress(std::string label, int64_t samples, double seconds = 0.0);
  ~Progress();  ///< ends the line of a bar that an error interrupts
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Called after a step over this many samples, with the sum of their losses.
  void step(int64_t samples, double loss_sum);
  void finish();           ///< ends the line
  double seconds() const;  ///< of the pass so far

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);

  std::string label_;
  int64_t total_;
  int64_t done_ = 0;
  double loss_sum_ = 0.0;
  bool on_terminal_;
  bool line_open_ = false;
  Clock::time_point drawn_;
  Clock::time_point start_;
};

}  // namespace quantrain
