#pragma once

#include <vector>

#include "framework/autograd/tensor_access.hpp"
#include "framework/distributed/communicator.hpp"
#include "framework/distributed/shard_tree.hpp"
#include "framework/distributed/sharding.hpp"

namespace quantrain {

/// What a shard of a batch, or several that are joined, gives.
struct ShardPart {
  double loss = 0.0;            ///< the sum over samples
  std::vector<Tensor> grads{};  ///< undefined where there is none
  /// The domains of the parameters, which a backward pass sets: TensorAccess::least(). Joined, the
  /// larger of the two; null where there is none.
  std::vector<TensorAccess::Least> least{};
};
ShardPart join_parts(ShardPart left, ShardPart right);
using ShardParts = ShardTree<ShardPart>;

/// Joins the parts of all ranks in the tree of all shards. Each rank sends what it has joined
/// itself, and joins an equal share of the gradients' elements for all ranks. A rank sends and
/// receives about twice the gradients, whatever the number of ranks, if its shards are one node of
/// the tree, as those of 1, 2, 4 or 8 ranks with 8 shards. Else its nodes are up to 2 log2(shards),
/// and the first half is sent for each.
/// count: number of shards of the batch. own: what this rank computed. changes: on entry, what
/// PassState::changes() gave for each own shard; on return, for each shard of the batch.
/// Throws: as Communicator::all_gather().
ShardPart exchange(Communicator& ranks,
                   const Sharding& sharding,
                   int64_t count,
                   const std::vector<Tensor>& tensors,
                   ShardParts& own,
                   std::vector<Communicator::Bytes>& changes);

}  // namespace quantrain
