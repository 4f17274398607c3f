#include "tests/proofs/jobs.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "framework/core/parallel.hpp"

namespace quantrain::proofs {

void Jobs::add(double cost, std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  waiting_.push({cost, std::move(job)});
  changed_.notify_one();
}

void Jobs::work() {
  const SerialLoops serial;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return error_ || !waiting_.empty() || running_ == 0; });
    if (error_ || waiting_.empty()) break;
    const std::function<void()> job = waiting_.top().run;
    waiting_.pop();
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      job();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --running_;
    if (error && !error_) error_ = error;
    changed_.notify_all();
  }
}

void Jobs::run(int threads) {
  std::vector<std::jthread> workers;
  for (int i = 0; i < std::max(threads, 1); ++i) workers.emplace_back([this] { work(); });
  workers.clear();  // waits for them
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace quantrain::proofs
