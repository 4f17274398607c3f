#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <tuple>
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
      std::unique_lock lock(all_.mutex_);
      if (all_.dead_ >= 0) lose(lock);
      const int64_t round = all_.round_;
      all_.slots_[static_cast<size_t>(rank_)] = std::move(own);
      if (++all_.arrived_ == all_.size_) {
        all_.met_ = all_.slots_;
        all_.arrived_ = 0;
        ++all_.round_;
        all_.changed_.notify_all();
      } else {
        all_.changed_.wait(lock, [&] { return all_.round_ != round || all_.dead_ >= 0; });
        if (all_.round_ == round) lose(lock);
      }
      return all_.met_;
    }
    std::unique_ptr<Exchange> start_bytes(int tag,
                                          Bytes bytes,
                                          const std::vector<Slice>& slices,
                                          const std::vector<int64_t>& sizes) override {
      return std::make_unique<Letters>(*this, tag, bytes, slices, sizes);
    }
    void abandon() override { all_.kill(rank_); }

   private:
    class Letters : public Exchange {
     public:
      Letters(Rank& rank,
              int tag,
              const Bytes& bytes,
              const std::vector<Slice>& slices,
              const std::vector<int64_t>& sizes)
          : rank_(rank), tag_(tag), sizes_(sizes), came_(sizes.size()) {
        const std::lock_guard lock(rank.all_.mutex_);
        for (size_t r = 0; r < slices.size(); ++r) {
          const auto begin = bytes.begin() + slices[r].begin;
          Bytes letter(begin, begin + slices[r].size);
          if (static_cast<int64_t>(r) == rank.rank_)
            came_[r] = std::move(letter);
          else if (!letter.empty())
            rank.all_.letters_[{tag, rank.rank_, static_cast<int64_t>(r)}].push_back(
                std::move(letter));
        }
      }
      bool test() override {
        std::unique_lock lock(rank_.all_.mutex_);
        if (rank_.all_.dead_ >= 0) rank_.lose(lock);
        for (size_t r = 0; r < came_.size(); ++r) {
          if (static_cast<int64_t>(r) == rank_.rank_ || sizes_[r] == 0 || !came_[r].empty())
            continue;
          std::deque<Bytes>& box =
              rank_.all_.letters_[{tag_, static_cast<int64_t>(r), rank_.rank_}];
          if (box.empty()) return false;
          came_[r] = std::move(box.front());
          box.pop_front();
          if (std::ssize(came_[r]) != sizes_[r])
            throw DistributedError("ranks", "a rank sent ", came_[r].size(), " bytes");
        }
        return true;
      }
      std::span<const uint8_t> from(int64_t rank) const override {
        return came_[static_cast<size_t>(rank)];
      }

     private:
      Rank& rank_;
      int tag_;
      std::vector<int64_t> sizes_;
      std::vector<Bytes> came_;
    };

    [[noreturn]] void lose(std::unique_lock<std::mutex>& lock) {
      const std::string dead = name(all_.dead_);
      lock.unlock();
      give_up(dead + " died");
    }

    ThreadRanks& all_;
    int64_t rank_;
  };

  int64_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bytes> slots_;
  std::vector<Bytes> met_;
  std::map<std::tuple<int, int64_t, int64_t>, std::deque<Bytes>> letters_;  // tag, from, to
  int64_t arrived_ = 0;
  int64_t round_ = 0;
  int64_t dead_ = -1;
};

}  // namespace quantrain::test
