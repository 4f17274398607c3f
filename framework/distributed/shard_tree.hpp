#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace quantrain {

/// A part of a ShardTree: the shards [index 2^level, (index + 1) 2^level) of those that exist.
struct ShardNode {
  int level = 0;
  int64_t index = 0;
  auto operator<=>(const ShardNode&) const = default;
};

/// Joins the values of k shards in a binary tree, whose form depends on k alone: shards 0 and 1, 2
/// and 3, ..., then pairs of pairs, and so on; what has no right neighbour moves up unchanged. Each
/// pair is joined as soon as both values are there, in whatever order and by whatever process they
/// were added. So the result has the same bits on any number of processes.
template <class T>
class ShardTree {
 public:
  /// join(left, right) returns the value of both.
  using Join = std::function<T(T left, T right)>;
  ShardTree(int64_t k, Join join) : k_(k), join_(std::move(join)) {}

  /// Adds the value of a shard, or of a node that another tree holds.
  void add(ShardNode node, T value) {
    while (size_of(node.level) > 1) {
      const ShardNode other{node.level, node.index ^ 1};
      const ShardNode parent{node.level + 1, node.index / 2};
      if (other.index < size_of(node.level)) {
        auto found = nodes_.extract(other);
        if (found.empty()) break;
        value = other.index < node.index ? join_(std::move(found.mapped()), std::move(value))
                                         : join_(std::move(value), std::move(found.mapped()));
      }
      node = parent;
    }
    nodes_.emplace(node, std::move(value));
  }
  void add(int64_t shard, T value) { add(ShardNode{0, shard}, std::move(value)); }

  /// Whether all shards are joined.
  bool complete() const { return nodes_.size() == 1 && size_of(nodes_.begin()->first.level) == 1; }
  /// What was joined so far; of a complete tree, only its value.
  std::map<ShardNode, T>& nodes() { return nodes_; }

 private:
  /// Number of nodes on a level.
  int64_t size_of(int level) const { return ((k_ - 1) >> level) + 1; }

  int64_t k_;
  Join join_;
  std::map<ShardNode, T> nodes_;
};

}  // namespace quantrain
