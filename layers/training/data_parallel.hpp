#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/data/loader.hpp"
#include "framework/distributed/communicator.hpp"
#include "framework/distributed/sharding.hpp"
#include "framework/optim/optimizer.hpp"
#include "layers/module.hpp"
#include "layers/training/pass_state.hpp"
#include "layers/training/shard_exchange.hpp"

namespace quantrain {

struct DataParallelOptions {
  int64_t shards = 8;             ///< of a full batch, at least 1
  Communicator* ranks = nullptr;  ///< null: this process computes all shards
  /// Other tensors whose gradients the loss may have, such as parameters that you train yourself.
  std::vector<NamedState> also = {};
};

/// A batch in shards.
struct ShardedBatch {
  int64_t samples = 0;          ///< of all shards
  int64_t count = 0;            ///< number of shards
  Sharding::Interval own;       ///< numbers of the shards that this process computes
  std::vector<Batch> shards{};  ///< those shards
  int64_t size() const { return samples; }
};

/// The batches of one epoch, in shards. Each process reads only its own shards.
class ShardedEpoch {
 public:
  ShardedEpoch(const DataLoader& loader, const Sharding& sharding, int64_t epoch);

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = ShardedBatch;
    using difference_type = std::ptrdiff_t;
    using pointer = ShardedBatch*;
    using reference = ShardedBatch&;

    ShardedBatch& operator*() & { return batch_; }
    ShardedBatch operator*() && { return std::move(batch_); }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return index_ == epoch_->loader_.batches(); }

   private:
    friend class ShardedEpoch;
    explicit Iterator(const ShardedEpoch& epoch);
    void read();

    const ShardedEpoch* epoch_;
    DataLoader::Iterator shards_;
    int64_t index_ = 0;
    ShardedBatch batch_;
  };
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  DataLoader loader_;
  Sharding sharding_;
};

/// Computes a batch in shards, each as if it were a batch of its own: with its own batch
/// statistics, its own ranges of observers, its own random numbers. Then it joins them. The result
/// depends on the number of shards, not on who computed them.
///   DataParallel parallel(net, optimizer, {.shards = 8, .ranks = &ranks});
///   for (ShardedBatch& batch : parallel.epoch(loader, e)) {
///     optimizer.zero_grad();
///     parallel.backward(batch, [&](Batch& b) { return cross_entropy(net(b.input), b); });
///     optimizer.step();
///   }
/// How a shard is joined, if it has n of the batch's N samples:
///   loss, gradients  sum of n / N times that of the shard, in a binary tree over the shards; also
///                    of gradients that the loss sets, or computes in a backward pass of its own
///   running statistics, ranges, counts   Module::join_shards()
/// So if the loss is a mean over samples, so is the joined one. Each rank computes its shards, and
/// all ranks get the joined values. While a rank's last shard is in its backward pass, gradients
/// that are complete are already sent. fit() does the same with FitOptions::shards and ranks.
class DataParallel {
 public:
  /// Network, optimizer and ranks must outlive this object; the network keeps its modules, slots
  /// and state. All ranks start with the same network and optimizer: see check_same().
  /// Throws: DataError if options.shards is below 1.
  DataParallel(Module& net, Optimizer& optimizer, DataParallelOptions options = {});

  /// Throws: as DataLoader::sharded() and DataLoader::epoch().
  ShardedEpoch epoch(const DataLoader& loader, int64_t epoch) const;

  /// Adds share times the batch's gradients to those of the optimizer's and network's parameters
  /// and of options.also. Updates the network's running statistics and ranges. Returns the loss.
  /// Throws: ShapeError if loss does not return one number; GraphError if loss changes a parameter
  /// or a tensor of options.also, or, with several ranks, if a node's backward() adds to the
  /// gradient of a tensor that is not its input after that gradient was sent; what loss and
  /// Module::join_shards() throw; DistributedError if another rank threw. On an error, gradients,
  /// statistics and ranges are those from before.
  float backward(ShardedBatch& batch,
                 const std::function<Tensor(Batch&)>& loss,
                 float share = 1.0f);

  /// Checks that all ranks have the same program, float kernels, number of shards, layers with
  /// their options (of registered types: register_layer()), preparation, state of network,
  /// optimizer and options.also, and the same facts of yours, such as {"seed", "7"}. Does nothing
  /// without ranks.
  /// Throws: DistributedError, in all ranks, naming what differs.
  void check_same(std::vector<Fact> facts) const;

  const Sharding& sharding() const { return sharding_; }

 private:
  /// The loss of a shard.
  Tensor forward(Batch& shard, const std::function<Tensor(Batch&)>& loss);
  /// Computes the gradients of weight times the loss y, and multiplies those that the loss has set.
  /// sends: they are sent as soon as they are complete.
  void backward(int64_t shard, Tensor y, float weight, ShardExchange& exchange, bool sends);
  std::string name_of(const Tensor& tensor) const;
  /// Takes the gradients and domains from the tensors.
  ShardPart take();

  Module& net_;
  Optimizer& optimizer_;
  DataParallelOptions options_;
  Sharding sharding_;
  PassState state_;
  std::vector<Tensor> tensors_;                      // whose gradients are joined
  std::unordered_map<const void*, size_t> indices_;  // in tensors_, by TensorAccess::identity()
  std::optional<GradBuckets> buckets_;
  std::vector<NamedState> unchanged_;  // what a loss must not change
};

}  // namespace quantrain
