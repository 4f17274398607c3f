#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layers/module.hpp"

namespace quantrain {

/// The state of a network that a training pass changes by itself, without an optimizer: running
/// statistics, observed ranges, counts (Module::pass_state()). While a batch is computed in shards,
/// each shard begins with the values from before the batch. Then the values that the shards left
/// are joined, by Module::join_shards() of each module. The result depends on the shards alone, not
/// on who computed them or in which order.
class PassState {
 public:
  /// The network must outlive this object and keep its modules, slots and state.
  explicit PassState(Module& net);

  /// Keeps the values from before a batch.
  void keep();
  /// Restores them.
  void restore();
  /// The values that differ from those kept, as bytes that join() reads, in this process or in
  /// another one of the same network.
  std::vector<uint8_t> changes() const;
  /// Sets the state to what the shards of the batch left. changes: of each shard, in their order;
  /// samples: how many each had.
  /// Throws: DistributedError if the bytes do not fit the network; what Module::join_shards() throws.
  /// Then the state is that from before the batch.
  void join(const std::vector<std::vector<uint8_t>>& changes, std::span<const int64_t> samples);

  /// Whether the tensor belongs to this state.
  bool contains(const Tensor& tensor) const;

 private:
  struct Part {
    Module* module;
    std::vector<NamedState> own;     // handles
    std::vector<NamedState> before;  // copies
  };
  std::vector<Part> parts_;
};

}  // namespace quantrain
