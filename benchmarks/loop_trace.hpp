#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace quantrain::benchmarks {

/// Predicts how the calling thread's work would run on more threads than the machine has. While it
/// lives, the loops of this thread run block by block in this thread, and each block is timed. From
/// these times, it computes how long the loop would take if each of `threads` threads took the next
/// block whenever it is free. It ignores the start of a loop, caches and memory bandwidth. Call
/// set_threads(threads) before, because a few loops are split by the number of threads.
/// The linker puts it in front of two functions of the library (CMakeLists.txt), so the library
/// has no code for it.
class LoopTrace {
 public:
  /// An operation as in Profile, or a layer. Times are in microseconds.
  struct Entry {
    std::string operation;
    int64_t loops = 0;     ///< of two blocks and more
    int64_t blocks = 0;    ///< in these loops
    double outside = 0.0;  ///< the time between loops, in which only one thread works
    double serial = 0.0;   ///< the loops' time on one thread
    double spread = 0.0;   ///< the loops' time on `threads` threads
    double total() const { return outside + spread; }
  };

  [[nodiscard]] explicit LoopTrace(int threads);
  ~LoopTrace();
  LoopTrace(const LoopTrace&) = delete;
  LoopTrace& operator=(const LoopTrace&) = delete;

  /// In the order in which they ended.
  const std::vector<Entry>& entries() const { return entries_; }
  /// Marks the end of an operation. Operations of the same name are added up.
  void end(const std::string& operation);

  /// Called by the linker's detour.
  void run(int64_t blocks, void* context, void (*function)(void*, int64_t));

 private:
  using Clock = std::chrono::steady_clock;
  double microseconds();  ///< since the last call

  size_t threads_;
  Clock::time_point last_ = Clock::now();
  Entry now_;
  std::vector<Entry> entries_;
};

void print_trace_header(int threads);
/// Prints the sums of the entries, and of the `most` longest, as the best of several traces of the
/// same work.
void print(const std::string& title,
           const std::vector<std::vector<LoopTrace::Entry>>& traces,
           size_t most);

}  // namespace quantrain::benchmarks
