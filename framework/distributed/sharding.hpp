#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace quantrain {

/// How batches are cut into shards, and which process computes which shard. The cut depends on the
/// batch and on `shards` alone, never on the number of processes.
///   A full batch of B samples has `shards` shards. A smaller one of n samples has
///   k = max(1, n shards / B) of them, rounded down, so that none is smaller than those of a full
///   batch, unless the batch itself is. Shard s holds the samples [n s / k, n (s + 1) / k).
///   Of R ranks, rank r computes the shards [k r / R, k (r + 1) / R).
struct Sharding {
  int64_t shards = 1;  ///< of a full batch
  int64_t rank = 0;    ///< of this process, from 0
  int64_t ranks = 1;   ///< number of processes

  struct Interval {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
    bool operator==(const Interval&) const = default;
  };

  /// Number of shards of a batch of `samples`, if a full one has `full`.
  int64_t count(int64_t samples, int64_t full) const {
    return std::clamp<int64_t>(samples * shards / full, 1, shards);
  }
  /// Part i of n things that are divided among `parts`.
  static Interval part(int64_t n, int64_t parts, int64_t i) {
    return {n * i / parts, n * (i + 1) / parts};
  }
  /// The shards of a rank, if a batch has k.
  Interval of_rank(int64_t k, int64_t r) const { return part(k, ranks, r); }
  Interval own(int64_t k) const { return of_rank(k, rank); }
};

/// While it lives, this thread computes a shard. What draws random numbers in a pass, such as
/// Dropout, asks for its number, so that the shards of a batch draw different ones, whichever
/// process computes them.
class ShardScope {
 public:
  [[nodiscard]] explicit ShardScope(int64_t shard) : before_(std::exchange(current_, shard)) {}
  ~ShardScope() { current_ = before_; }
  ShardScope(const ShardScope&) = delete;
  ShardScope& operator=(const ShardScope&) = delete;

  /// The number of the shard within its batch; 0 outside of all shards.
  static int64_t current() { return current_; }

 private:
  static inline thread_local int64_t current_ = 0;
  int64_t before_;
};

}  // namespace quantrain
