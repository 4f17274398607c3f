#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/autograd/tensor_access.hpp"
#include "framework/distributed/communicator.hpp"
#include "framework/distributed/shard_tree.hpp"
#include "framework/distributed/sharding.hpp"

namespace quantrain {

/// What the shards of a batch give, joined.
struct ShardPart {
  double loss = 0.0;            ///< the sum over samples
  std::vector<Tensor> grads{};  ///< undefined where there is none
  /// The domains of the parameters, which a backward pass sets: TensorAccess::least(). Joined, the
  /// largest; null where there is none.
  std::vector<TensorAccess::Least> least{};
};
/// left[i] + right[i]. An undefined tensor counts as zero. The sums take the memory of the left.
std::vector<Tensor> sum_of(std::vector<Tensor> left, const std::vector<Tensor>& right);

/// Which gradients are joined and sent together: few enough that the first ones leave while the
/// backward pass goes on, and enough that a message is worth its latency.
class GradBuckets {
 public:
  /// From the last tensor to the first, because the last layers get their gradients first.
  explicit GradBuckets(const std::vector<Tensor>& tensors);

  struct Place {
    size_t bucket;
    size_t position;  ///< in the bucket
  };
  const std::vector<std::vector<size_t>>& tensors() const { return tensors_; }  ///< of each bucket
  const Place& of(size_t tensor) const { return places_[tensor]; }

 private:
  std::vector<std::vector<size_t>> tensors_;
  std::vector<Place> places_;
};

/// Joins what the shards of one batch give in the tree of all shards, whichever rank computed them.
/// A rank sends what it has joined itself, and joins an equal share of the gradients' elements for
/// all ranks: it sends and receives about twice the gradients, whatever the number of ranks, if its
/// shards are one node of the tree, as those of 1, 2, 4 or 8 ranks with 8 shards. Else its nodes
/// are up to 2 log2(shards), and the first half is sent for each. While the last shard of a rank is
/// in its backward pass, the gradients that are final are already sent, in buckets. For each own
/// shard, in order: add_pass(), add() for each gradient, and end_shard(). Then finish().
class ShardExchange {
 public:
  using Bytes = Communicator::Bytes;

  /// Tensors, buckets and ranks must outlive this object. ranks: null if there are no others.
  /// count: number of shards of the batch.
  ShardExchange(const std::vector<Tensor>& tensors,
                const GradBuckets& buckets,
                const Sharding& sharding,
                int64_t count,
                Communicator* ranks);

  /// Adds the loss of a shard, and what its forward pass changed (PassState::changes()). For the
  /// last shard of this rank, waits for all ranks to come as far.
  /// Throws: as Communicator::all_gather().
  void add_pass(int64_t shard, double loss, Bytes changes);
  /// Adds the gradient and the domain of tensor t, once for a shard. Returns false, and adds
  /// nothing, if the other ranks can no longer get it: it comes for the second time, or tensor t
  /// had neither a gradient nor requires_grad() in any shard when the last add_pass() was called.
  /// Throws: DistributedError if a rank died.
  [[nodiscard]] bool add(int64_t shard, size_t t, Tensor grad, const TensorAccess::Least& least);
  /// There are no other gradients of this shard.
  void end_shard(int64_t shard);
  /// Throws: as Communicator::all_gather().
  ShardPart finish();
  /// In place of all further calls, in all ranks. Then finish() throws an error with this text in
  /// the others.
  void fail(const char* error) noexcept;

  /// After finish(): those of each shard of the batch.
  const std::vector<Bytes>& changes() const { return changes_; }

 private:
  using Grads = std::vector<Tensor>;  // of a bucket
  struct Bucket {
    ShardTree<Grads> own;
    Grads running{};                // of the shard that is in its backward pass
    size_t lacking = 0;             // in running
    std::vector<int64_t> begins{};  // where each gradient is among the elements that are sent
    std::vector<uint8_t> has{};     // whether some shard has the gradient
    enum { kWaits, kToJoin, kToAll } sent = kWaits;  // what the exchange sends
    std::unique_ptr<Communicator::Exchange> exchange{};
    Grads joined{};
  };

  void tell();
  void close(int64_t shard, size_t b);
  void start(size_t b);
  bool go_on(size_t b);
  void join_slices(size_t b);
  void take_joined(size_t b);
  void wait();
  void share_least();
  Sharding::Interval slice(const Bucket& bucket, int64_t rank) const;

  const std::vector<Tensor>& tensors_;
  const GradBuckets& plan_;
  Sharding sharding_;
  int64_t count_;
  Sharding::Interval own_;
  Communicator* ranks_;
  ShardTree<double> losses_;
  std::vector<Bytes> changes_;
  std::vector<TensorAccess::Least> least_;
  std::vector<uint8_t> sent_;   // tensors whose gradients are sent
  std::vector<uint8_t> added_;  // tensors that add() got in this shard
  std::vector<Bucket> buckets_;
  std::vector<std::vector<ShardNode>> nodes_;  // that each rank has joined itself
  bool told_ = false;                          // the ranks wait for each other's gradients
};

}  // namespace quantrain
