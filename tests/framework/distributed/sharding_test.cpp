#include "framework/distributed/sharding.hpp"

#include <string>
#include <vector>

#include "framework/distributed/shard_tree.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

using Tree = ShardTree<std::string>;

std::string pair_of(const std::string& left, const std::string& right) {
  return "(" + left + right + ")";
}

/// The tree of k shards, whose leaves were added in this order.
std::string tree_of(int64_t k, const std::vector<int64_t>& order) {
  Tree tree(k, pair_of);
  for (const int64_t shard : order) tree.add(shard, std::to_string(shard));
  return tree.complete() ? tree.nodes().begin()->second : "incomplete";
}

}  // namespace

TEST_CASE("a tree of shards depends on their number alone", "[framework][distributed]") {
  CHECK(tree_of(1, {0}) == "0");
  CHECK(tree_of(2, {1, 0}) == "(01)");
  CHECK(tree_of(3, {0, 1, 2}) == "((01)2)");
  CHECK(tree_of(3, {2, 0, 1}) == "((01)2)");
  CHECK(tree_of(5, {4, 2, 0, 3, 1}) == "(((01)(23))4)");
  CHECK(tree_of(6, {5, 4, 3, 2, 1, 0}) == "(((01)(23))(45))");
  CHECK(tree_of(7, {0, 1, 2, 3, 4, 5, 6}) == "(((01)(23))((45)6))");
  CHECK(tree_of(8, {7, 0, 6, 1, 5, 2, 4, 3}) == "(((01)(23))((45)(67)))");
  CHECK(tree_of(8, {7, 0, 6, 1, 5, 2, 4}) == "incomplete");
}

TEST_CASE("ranks that join parts of a tree get the same tree", "[framework][distributed]") {
  for (const int64_t k : {1, 2, 3, 5, 6, 7, 8, 13, 16}) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < k; ++i) all.push_back(i);
    const std::string expected = tree_of(k, all);
    for (int64_t ranks = 1; ranks <= k + 2; ++ranks) {
      Tree whole(k, pair_of);
      int64_t next = 0;
      for (int64_t rank = ranks - 1; rank >= 0; --rank) {
        const Sharding::Interval own = Sharding{.shards = k, .rank = rank, .ranks = ranks}.own(k);
        Tree part(k, pair_of);
        for (int64_t i = own.begin; i < own.end; ++i) part.add(i, std::to_string(i));
        for (auto& [node, value] : part.nodes()) whole.add(node, value);
        next += own.size();
      }
      INFO(k << " shards, " << ranks << " ranks");
      CHECK(next == k);
      REQUIRE(whole.complete());
      CHECK(whole.nodes().begin()->second == expected);
    }
  }
}

TEST_CASE("a smaller batch has fewer shards, none smaller than a full one's",
          "[framework][distributed]") {
  const Sharding cut{.shards = 8};
  CHECK(cut.count(64, 64) == 8);
  CHECK(cut.count(63, 64) == 7);
  CHECK(cut.count(17, 64) == 2);
  CHECK(cut.count(15, 64) == 1);
  CHECK(cut.count(1, 64) == 1);
  CHECK(cut.count(127, 64) == 8);  // merge_last
  CHECK(cut.count(10, 10) == 8);
  // 63 samples in 7 shards of 9; 17 in 2 of 8 and 9
  CHECK(Sharding::part(63, 7, 6) == Sharding::Interval{54, 63});
  CHECK(Sharding::part(17, 2, 0) == Sharding::Interval{0, 8});
  CHECK(Sharding::part(17, 2, 1) == Sharding::Interval{8, 17});
}

TEST_CASE("the number of the shard is that of the innermost scope", "[framework][distributed]") {
  CHECK(ShardScope::current() == 0);
  {
    const ShardScope outer(3);
    CHECK(ShardScope::current() == 3);
    {
      const ShardScope inner(5);
      CHECK(ShardScope::current() == 5);
    }
    CHECK(ShardScope::current() == 3);
  }
  CHECK(ShardScope::current() == 0);
}

}  // namespace quantrain
