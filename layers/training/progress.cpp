#include "layers/training/progress.hpp"

#include <algorithm>
#include <cstdio>

#include "framework/core/system/process.hpp"

namespace quantrain {

Progress::Progress(std::string label, int64_t samples, double seconds)
    : label_(std::move(label)),
      total_(samples),
      on_terminal_(system::is_terminal(stdout)),
      drawn_(Clock::now()),
      start_(drawn_ -
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

Progress::~Progress() {
  if (!line_open_) return;
  std::printf("\n");
  std::fflush(stdout);
}

void Progress::step(int64_t samples, double loss_sum) {
  done_ += samples;
  loss_sum_ += loss_sum;
  const Clock::time_point now = Clock::now();
  if (on_terminal_ && now - drawn_ > std::chrono::milliseconds(100)) {
    drawn_ = now;
    draw(false, {});
  }
}

void Progress::stop() {
  if (!stop_) stop_ = Clock::now();
}

void Progress::finish(const std::string& more) {
  stop();
  draw(true, more);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(stop_.value_or(Clock::now()) - start_).count();
}

void print_progress(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Progress::draw(bool last, const std::string& more) {
  if (label_.empty()) return;
  const double elapsed = seconds();
  const double rate = static_cast<double>(done_) / std::max(elapsed, 1e-9);
  const double loss = loss_sum_ / static_cast<double>(std::max<int64_t>(done_, 1));
  if (last) {
    std::printf("%s%s: loss %.4f%s%s, %.0f samples/s, %.1f s%s\n",
                on_terminal_ ? "\r" : "",
                label_.c_str(),
                loss,
                more.empty() ? "" : ", ",
                more.c_str(),
                rate,
                elapsed,
                on_terminal_ ? "\033[K" : "");
  } else {
    constexpr int kWidth = 30;
    const double part =
        static_cast<double>(done_) / static_cast<double>(std::max<int64_t>(total_, 1));
    const auto filled = static_cast<int>(kWidth * std::clamp(part, 0.0, 1.0));
    const double left = static_cast<double>(std::max<int64_t>(total_ - done_, 0)) / rate;
    const std::string bar = std::string(static_cast<size_t>(filled), '=') +
                            std::string(static_cast<size_t>(kWidth - filled), ' ');
    std::printf("\r%s [%s] loss %.4f, %.0f samples/s, %.0f s left\033[K",
                label_.c_str(),
                bar.c_str(),
                loss,
                rate,
                left);
  }
  line_open_ = !last;
  std::fflush(stdout);
}

}  // namespace quantrain
