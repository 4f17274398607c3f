#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/distributed/communicator.hpp"

namespace quantrain::test {

/// Ranks that are threads of this process.
class ThreadRanks {
 public:
  explicit ThreadRanks(int64_t size) : size_(size), slots_(static_cast<size_t>(size)) {}

  /// Runs body(communicator) in each rank. Returns what each threw, "" if nothing. A rank that ends
  /// by an exception is dead for the others.
  std::vector<std::string> run(const std::function<void(Communicator&)>& body) {
    std::vector<std::string> errors(slots_.size());
    std::vector<std::thread> threads;
    for (int64_t r = 0; r < size_; ++r) {
      threads.emplace_back([&, r] {
        Rank rank(*this, r);
        try {
          body(rank);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(r)] = error.what();
          kill(r);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  /// From now on, the others wait for this rank in vain.
  void kill(int64_t rank) {
    const std::lock_guard lock(mutex_);
    if (dead_ < 0) dead_ = rank;
    changed_.notify_all();
  }

 private:
  using Bytes = Communicator::Bytes;

  class Rank : public Communicator {
   public:
    Rank(ThreadRanks& all, int64_t rank) : all_(all), rank_(rank) {}
    int64_t rank() const override { return rank_; }
    int64_t size() const override { return all_.size_; }
    std::string name(int64_t rank) const override { return "rank " + std::to_string(rank); }

   protected:
    std::vector<Bytes> gather_bytes(Bytes own) override {
      std::vector<Bytes> result;
      for (std::vector<Bytes>& sent : meet({std::move(own)})) result.push_back(std::move(sent[0]));
      return result;
    }
    std::vector<Bytes> exchange_bytes(const std::vector<Bytes>& parts) override {
      std::vector<Bytes> result;
      for (std::vector<Bytes>& sent : meet(parts))
        result.push_back(std::move(sent[static_cast<size_t>(rank_)]));
      return result;
    }
    void abandon() override { all_.kill(rank_); }

   private:
    /// What each rank brought.
    std::vector<std::vector<Bytes>> meet(const std::vector<Bytes>& own) {
      std::unique_lock lock(all_.mutex_);
      const auto lose = [&] {
        const std::string dead = name(all_.dead_);
        lock.unlock();
        give_up(dead + " died");
      };
      if (all_.dead_ >= 0) lose();
      const int64_t round = all_.round_;
      all_.slots_[static_cast<size_t>(rank_)] = own;
      if (++all_.arrived_ == all_.size_) {
        all_.met_ = all_.slots_;
        all_.arrived_ = 0;
        ++all_.round_;
        all_.changed_.notify_all();
      } else {
        all_.changed_.wait(lock, [&] { return all_.round_ != round || all_.dead_ >= 0; });
        if (all_.round_ == round) lose();
      }
      return all_.met_;
    }

    ThreadRanks& all_;
    int64_t rank_;
  };

  int64_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<Bytes>> slots_;
  std::vector<std::vector<Bytes>> met_;
  int64_t arrived_ = 0;
  int64_t round_ = 0;
  int64_t dead_ = -1;
};

}  // namespace quantrain::test
