#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <vector>

namespace quantrain::proofs {

/// Independent jobs that run in several threads, each job in one thread alone. Of the waiting jobs,
/// the most expensive one runs first, so that no long job is left at the end. A job may add jobs.
/// Results must not depend on the order: let each job write to its own place.
class Jobs {
 public:
  /// cost: an estimate, in any unit.
  void add(double cost, std::function<void()> job);
  /// Runs all jobs in `threads` threads (at least 1), and returns when none is left.
  /// Throws: the first exception of a job, after the running jobs have ended; the others are left out.
  void run(int threads);

 private:
  struct Job {
    double cost;
    std::function<void()> run;
    bool operator<(const Job& other) const { return cost < other.cost; }
  };
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Job> waiting_;
  int running_ = 0;
  std::exception_ptr error_;
};

}  // namespace quantrain::proofs
