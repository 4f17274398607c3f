#include "layers/training/shard_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

using Bytes = Communicator::Bytes;

/// left + right. A gradient shares its memory with nothing else, so the sum takes that of the left.
Tensor sum_of(Tensor left, const Tensor& right) {
  if (!left.defined()) return right;
  if (!right.defined()) return left;
  float* const y = left.mutable_data();
  kernels::add_f32(left.elements(), y, right.data(), y);
  return left;
}

TensorAccess::Least larger_least(const TensorAccess::Least& a, const TensorAccess::Least& b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  auto both = std::make_shared<std::vector<float>>(*a);
  for (size_t i = 0; i < both->size(); ++i) (*both)[i] = std::max((*a)[i], (*b)[i]);
  return both;
}

void append_bytes(Bytes& to, const void* from, size_t n) {
  const auto* const bytes = static_cast<const uint8_t*>(from);
  to.insert(to.end(), bytes, bytes + n);
}

template <class T>
T next_of(std::span<const uint8_t>& from) {
  T value;
  if (from.size() < sizeof value) throw DistributedError("shards", "a rank sent too few bytes");
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return value;
}

/// Everything of a part except the elements of its gradients.
struct PartHead {
  double loss = 0.0;
  std::vector<uint8_t> has{};  // for each tensor: whether there is a gradient
  std::vector<TensorAccess::Least> least{};
};

/// What a rank tells the others about a batch.
struct RankReport {
  std::vector<PartHead> heads;  // of its nodes of the tree
  std::vector<Bytes> changes;
};

Bytes report_bytes(const RankReport& report) {
  Bytes bytes;
  for (const PartHead& head : report.heads) {
    append_bytes(bytes, &head.loss, sizeof head.loss);
    append_bytes(bytes, head.has.data(), head.has.size());
    for (const TensorAccess::Least& least : head.least) {
      const uint64_t size = least == nullptr ? 0 : least->size();
      append_bytes(bytes, &size, sizeof size);
      if (size > 0) append_bytes(bytes, least->data(), size * sizeof(float));
    }
  }
  for (const Bytes& changes : report.changes) {
    const uint64_t size = changes.size();
    append_bytes(bytes, &size, sizeof size);
    append_bytes(bytes, changes.data(), changes.size());
  }
  return bytes;
}

RankReport report_from(std::span<const uint8_t> bytes,
                       size_t nodes,
                       size_t tensors,
                       size_t shards) {
  RankReport report;
  for (size_t i = 0; i < nodes; ++i) {
    PartHead head{.loss = next_of<double>(bytes)};
    for (size_t t = 0; t < tensors; ++t) head.has.push_back(next_of<uint8_t>(bytes));
    for (size_t t = 0; t < tensors; ++t) {
      std::vector<float> least;
      for (auto left = next_of<uint64_t>(bytes); left > 0; --left)
        least.push_back(next_of<float>(bytes));
      head.least.push_back(least.empty() ? nullptr
                                         : std::make_shared<const std::vector<float>>(least));
    }
    report.heads.push_back(std::move(head));
  }
  for (size_t i = 0; i < shards; ++i) {
    const auto size = next_of<uint64_t>(bytes);
    if (bytes.size() < size) throw DistributedError("shards", "a rank sent too few bytes");
    report.changes.emplace_back(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    bytes = bytes.subspan(size);
  }
  return report;
}

/// The gradients of all tensors that have one, one after the other: where tensor t begins.
/// begins[t + 1] is where it ends.
std::vector<int64_t> grad_layout(const std::vector<Tensor>& tensors,
                                 const std::vector<uint8_t>& any) {
  std::vector<int64_t> begins{0};
  for (size_t t = 0; t < tensors.size(); ++t)
    begins.push_back(begins.back() + (any[t] != 0 ? tensors[t].elements() : 0));
  return begins;
}

/// Elements [begin, begin + x.size()) of the gradients of a part.
struct GradSlice {
  std::vector<float> x;
  std::vector<uint8_t> has;
};

/// Joins slices as sum_of() joins whole gradients.
GradSlice join_slices(GradSlice left,
                      const GradSlice& right,
                      const std::vector<int64_t>& begins,
                      int64_t begin) {
  const int64_t end = begin + std::ssize(left.x);
  for (size_t t = 0; t + 1 < begins.size(); ++t) {
    const int64_t from = std::max(begins[t], begin);
    const int64_t n = std::min(begins[t + 1], end) - from;
    const bool adds = left.has[t] != 0 && right.has[t] != 0;
    if (n > 0 && right.has[t] != 0) {
      float* const y = left.x.data() + (from - begin);
      const float* const x = right.x.data() + (from - begin);
      if (adds) {
        kernels::add_f32(n, y, x, y);
      } else {
        std::copy_n(x, n, y);
      }
    }
    left.has[t] |= right.has[t];
  }
  return left;
}

/// The nodes of the tree that a rank holds once it has joined its shards.
std::vector<ShardNode> nodes_of(const Sharding::Interval& shards, int64_t count) {
  ShardTree<char> tree(count, [](char left, char) { return left; });
  for (int64_t shard = shards.begin; shard < shards.end; ++shard) tree.add(shard, 0);
  std::vector<ShardNode> nodes;
  for (const auto& [node, value] : tree.nodes()) nodes.push_back(node);
  return nodes;
}

std::vector<float> flat_grads(const ShardPart& part, const std::vector<int64_t>& begins) {
  std::vector<float> all(static_cast<size_t>(begins.back()));
  for (size_t t = 0; t < part.grads.size(); ++t) {
    const Tensor& grad = part.grads[t];
    if (grad.defined()) std::copy_n(grad.data(), grad.elements(), all.data() + begins[t]);
  }
  return all;
}

}  // namespace

ShardPart join_parts(ShardPart left, ShardPart right) {
  left.loss += right.loss;
  for (size_t i = 0; i < left.grads.size(); ++i)
    left.grads[i] = sum_of(std::move(left.grads[i]), right.grads[i]);
  for (size_t i = 0; i < left.least.size(); ++i)
    left.least[i] = larger_least(left.least[i], right.least[i]);
  return left;
}

ShardPart exchange(Communicator& ranks,
                   const Sharding& sharding,
                   int64_t count,
                   const std::vector<Tensor>& tensors,
                   ShardParts& own,
                   std::vector<Bytes>& changes) {
  if (ranks.size() == 1) return std::move(own.nodes().begin()->second);
  RankReport report{.heads = {}, .changes = std::move(changes)};
  for (const auto& [node, part] : own.nodes()) {
    PartHead head{.loss = part.loss, .least = part.least};
    for (const Tensor& grad : part.grads) head.has.push_back(grad.defined() ? 1 : 0);
    report.heads.push_back(std::move(head));
  }

  // Losses, and which gradients there are; what the shards changed.
  std::vector<std::vector<ShardNode>> nodes;
  std::vector<RankReport> reports;
  std::vector<uint8_t> any(tensors.size());
  std::vector<TensorAccess::Least> least(tensors.size());
  ShardTree<double> losses(count, [](double left, double right) { return left + right; });
  const std::vector<Bytes> told = ranks.all_gather(report_bytes(report));
  ranks.expect_exchange();
  changes.clear();
  for (int64_t r = 0; r < ranks.size(); ++r) {
    const Sharding::Interval shards = sharding.of_rank(count, r);
    nodes.push_back(nodes_of(shards, count));
    reports.push_back(report_from(told[static_cast<size_t>(r)],
                                  nodes.back().size(),
                                  tensors.size(),
                                  static_cast<size_t>(shards.size())));
    for (Bytes& of_shard : reports.back().changes) changes.push_back(std::move(of_shard));
    for (size_t i = 0; i < nodes.back().size(); ++i) {
      const PartHead& head = reports.back().heads[i];
      losses.add(nodes.back()[i], head.loss);
      for (size_t t = 0; t < any.size(); ++t) {
        any[t] |= head.has[t];
        least[t] = larger_least(least[t], head.least[t]);
      }
    }
  }

  // Each rank joins its share of the elements.
  const std::vector<int64_t> begins = grad_layout(tensors, any);
  const auto share = [&](int64_t r) { return Sharding::part(begins.back(), ranks.size(), r); };
  std::vector<Bytes> sent(static_cast<size_t>(ranks.size()));
  for (const auto& [node, part] : own.nodes()) {
    const std::vector<float> all = flat_grads(part, begins);
    for (int64_t r = 0; r < ranks.size(); ++r) {
      append_bytes(sent[static_cast<size_t>(r)],
                   all.data() + share(r).begin,
                   static_cast<size_t>(share(r).size()) * sizeof(float));
    }
  }
  const int64_t begin = share(ranks.rank()).begin;
  const auto width = static_cast<size_t>(share(ranks.rank()).size());
  ShardTree<GradSlice> slices(count, [&](GradSlice left, const GradSlice& right) {
    return join_slices(std::move(left), right, begins, begin);
  });
  const std::vector<Bytes> got = ranks.exchange(sent);
  for (size_t r = 0; r < got.size(); ++r) {
    for (size_t i = 0; i < nodes[r].size(); ++i) {
      GradSlice slice{.x = std::vector<float>(width), .has = reports[r].heads[i].has};
      if (width > 0)
        std::memcpy(
            slice.x.data(), got[r].data() + i * width * sizeof(float), width * sizeof(float));
      slices.add(nodes[r][i], std::move(slice));
    }
  }
  const std::vector<float>& joined = slices.nodes().begin()->second.x;
  const std::vector<Bytes> all = ranks.all_gather(
      {reinterpret_cast<const uint8_t*>(joined.data()), joined.size() * sizeof(float)});

  Bytes whole;
  for (const Bytes& bytes : all) append_bytes(whole, bytes.data(), bytes.size());
  ShardPart result{.loss = losses.nodes().begin()->second, .least = std::move(least)};
  for (size_t t = 0; t < tensors.size(); ++t) {
    result.grads.emplace_back();
    if (any[t] == 0) continue;
    Tensor grad = Tensor::empty(tensors[t].shape());
    std::memcpy(grad.mutable_data(),
                whole.data() + static_cast<size_t>(begins[t]) * sizeof(float),
                static_cast<size_t>(grad.elements()) * sizeof(float));
    result.grads.back() = grad;
  }
  return result;
}

}  // namespace quantrain
