#include "layers/training/shard_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/distributed/bytes.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

using Bytes = Communicator::Bytes;

constexpr const char* kShards = "shards";
// Smaller messages cost mostly their latency. Each bucket needs two tags of its own.
constexpr int64_t kBucketElements = 16 * 1024;
constexpr int64_t kMostBuckets = 4096;

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

/// Calls use(t, from, n) for each tensor t that has elements in [begin, end): n elements, which
/// begin at `from`. Tensor t has the elements [begins[t], begins[t + 1]).
template <class Use>
void for_each_part(const std::vector<int64_t>& begins, int64_t begin, int64_t end, const Use& use) {
  for (size_t t = 0; t + 1 < begins.size(); ++t) {
    const int64_t from = std::max(begins[t], begin);
    const int64_t n = std::min(begins[t + 1], end) - from;
    if (n > 0) use(t, from, n);
  }
}

/// Elements [begin, begin + x.size()) of the gradients of a bucket.
struct GradSlice {
  std::vector<float> x;
  std::vector<uint8_t> has;
};

/// Joins slices as sum_of() joins whole gradients.
GradSlice sum_of(GradSlice left,
                 const GradSlice& right,
                 const std::vector<int64_t>& begins,
                 int64_t begin) {
  for_each_part(begins, begin, begin + std::ssize(left.x), [&](size_t t, int64_t from, int64_t n) {
    if (right.has[t] == 0) return;
    float* const y = left.x.data() + (from - begin);
    const float* const x = right.x.data() + (from - begin);
    if (left.has[t] != 0)
      kernels::add_f32(n, y, x, y);
    else
      std::copy_n(x, n, y);
  });
  for (size_t t = 0; t < left.has.size(); ++t) left.has[t] |= right.has[t];
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

double sum_of_losses(double left, double right) { return left + right; }

}  // namespace

std::vector<Tensor> sum_of(std::vector<Tensor> left, const std::vector<Tensor>& right) {
  for (size_t i = 0; i < left.size(); ++i) left[i] = sum_of(std::move(left[i]), right[i]);
  return left;
}

GradBuckets::GradBuckets(const std::vector<Tensor>& tensors) : places_(tensors.size()) {
  int64_t all = 0;
  for (const Tensor& tensor : tensors) all += tensor.elements();
  const int64_t enough = std::max(kBucketElements, all / kMostBuckets);
  int64_t elements = enough;
  for (size_t t = tensors.size(); t-- > 0;) {
    if (elements >= enough) {
      tensors_.emplace_back();
      elements = 0;
    }
    places_[t] = {tensors_.size() - 1, tensors_.back().size()};
    tensors_.back().push_back(t);
    elements += tensors[t].elements();
  }
}

ShardExchange::ShardExchange(const std::vector<Tensor>& tensors,
                             const GradBuckets& buckets,
                             const Sharding& sharding,
                             int64_t count,
                             Communicator* ranks)
    : tensors_(tensors),
      plan_(buckets),
      sharding_(sharding),
      count_(count),
      own_(sharding.own(count)),
      ranks_(ranks),
      losses_(count, sum_of_losses),
      least_(tensors.size()),
      sent_(tensors.size()),
      added_(tensors.size()) {
  const auto join = [](Grads left, const Grads& right) {
    return quantrain::sum_of(std::move(left), right);
  };
  for (const std::vector<size_t>& of_bucket : plan_.tensors()) {
    buckets_.push_back({.own = ShardTree<Grads>(count, join),
                        .running = Grads(of_bucket.size()),
                        .lacking = of_bucket.size()});
  }
}

void ShardExchange::add_pass(int64_t shard, double loss, Bytes changes) {
  losses_.add(shard, loss);
  changes_.push_back(std::move(changes));
  if (shard + 1 == own_.end) tell();
}

/// Tells all ranks the losses, what the shards changed, and which gradients may come.
void ShardExchange::tell() {
  if (ranks_ == nullptr) return;
  Bytes own;
  for (const auto& [node, loss] : losses_.nodes()) append_value(own, loss);
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].requires_grad() || tensors_[t].grad().defined()) sent_[t] = 1;
  }
  append_bytes(own, sent_.data(), sent_.size());
  for (const Bytes& changes : changes_) {
    append_value(own, uint64_t{changes.size()});
    append_bytes(own, changes.data(), changes.size());
  }
  changes_.clear();
  const std::vector<Bytes> all = ranks_->all_gather(own);
  ranks_->expect_exchanges();
  losses_ = ShardTree<double>(count_, sum_of_losses);
  for (int64_t r = 0; r < ranks_->size(); ++r) {
    const Sharding::Interval shards = sharding_.of_rank(count_, r);
    ByteReader from(all[static_cast<size_t>(r)]);
    nodes_.push_back(nodes_of(shards, count_));
    for (const ShardNode& node : nodes_.back()) losses_.add(node, from.value<double>());
    for (uint8_t& sent : sent_) sent |= from.value<uint8_t>();
    for (int64_t i = 0; i < shards.size(); ++i) {
      const auto changes = from.bytes(from.value<uint64_t>());
      changes_.emplace_back(changes.begin(), changes.end());
    }
  }
  told_ = true;
}

bool ShardExchange::add(int64_t shard, size_t t, Tensor grad, const TensorAccess::Least& least) {
  if (added_[t] != 0 || (told_ && grad.defined() && sent_[t] == 0)) return false;
  added_[t] = 1;
  const auto& [number, position] = plan_.of(t);
  Bucket& bucket = buckets_[number];
  if (grad.defined() && !told_) sent_[t] = 1;
  least_[t] = larger_least(least_[t], least);
  bucket.running[position] = std::move(grad);
  if (--bucket.lacking == 0) close(shard, number);
  if (!told_) return true;
  // One test lets MPI work on all messages, so the first that has not ended is enough.
  for (size_t b = 0; b < buckets_.size() && go_on(b); ++b) {
  }
  return true;
}

void ShardExchange::end_shard(int64_t shard) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (buckets_[b].lacking > 0) close(shard, b);
    buckets_[b].lacking = buckets_[b].running.size();
  }
  std::fill(added_.begin(), added_.end(), uint8_t{0});
}

void ShardExchange::close(int64_t shard, size_t b) {
  Bucket& bucket = buckets_[b];
  bucket.lacking = 0;
  const size_t size = bucket.running.size();
  bucket.own.add(shard, std::exchange(bucket.running, Grads(size)));
  if (ranks_ != nullptr && shard + 1 == own_.end) start(b);
}

/// The elements of a bucket that a rank joins.
Sharding::Interval ShardExchange::slice(const Bucket& bucket, int64_t rank) const {
  return Sharding::part(bucket.begins.back(), ranks_->size(), rank);
}

/// A message to a rank: the elements that it joins, of each node; then whether each node has each
/// gradient.
void ShardExchange::start(size_t b) {
  Bucket& bucket = buckets_[b];
  const std::vector<size_t>& tensors = plan_.tensors()[b];
  bucket.begins = {0};
  for (const size_t t : tensors)
    bucket.begins.push_back(bucket.begins.back() + (sent_[t] != 0 ? tensors_[t].elements() : 0));
  bucket.has.assign(tensors.size(), 0);
  bucket.joined.resize(tensors.size());
  if (bucket.begins.back() == 0) {
    bucket.sent = Bucket::kToAll;
    return;
  }

  Bytes bytes;
  std::vector<Communicator::Slice> slices;
  std::vector<int64_t> sizes;
  for (int64_t r = 0; r < ranks_->size(); ++r) {
    const Sharding::Interval part = slice(bucket, r);
    const auto begin = std::ssize(bytes);
    for (const auto& joined : bucket.own.nodes()) {
      const Grads& grads = joined.second;
      const size_t to = bytes.size();
      bytes.resize(to + static_cast<size_t>(part.size()) * sizeof(float));
      for_each_part(bucket.begins, part.begin, part.end, [&](size_t i, int64_t from, int64_t n) {
        if (!grads[i].defined()) return;
        std::memcpy(bytes.data() + to + static_cast<size_t>(from - part.begin) * sizeof(float),
                    grads[i].data() + (from - bucket.begins[i]),
                    static_cast<size_t>(n) * sizeof(float));
      });
    }
    for (const auto& [node, grads] : bucket.own.nodes())
      for (const Tensor& grad : grads) bytes.push_back(grad.defined() ? 1 : 0);
    slices.push_back({begin, std::ssize(bytes) - begin});
    const auto nodes = std::ssize(nodes_[static_cast<size_t>(r)]);
    const auto width = slice(bucket, ranks_->rank()).size();
    sizes.push_back(nodes * (width * static_cast<int64_t>(sizeof(float)) +
                             static_cast<int64_t>(tensors.size())));
  }
  bucket.exchange =
      ranks_->start_exchange(static_cast<int>(2 * b), std::move(bytes), slices, sizes);
  bucket.sent = Bucket::kToJoin;
  bucket.own.nodes().clear();
}

/// Returns whether nothing is in flight.
bool ShardExchange::go_on(size_t b) {
  Bucket& bucket = buckets_[b];
  while (bucket.exchange != nullptr && bucket.exchange->test()) {
    if (bucket.sent == Bucket::kToJoin)
      join_slices(b);
    else
      take_joined(b);
  }
  return bucket.exchange == nullptr;
}

void ShardExchange::join_slices(size_t b) {
  Bucket& bucket = buckets_[b];
  const Sharding::Interval part = slice(bucket, ranks_->rank());
  const auto width = static_cast<size_t>(part.size());
  ShardTree<GradSlice> tree(count_, [&](GradSlice left, const GradSlice& right) {
    return sum_of(std::move(left), right, bucket.begins, part.begin);
  });
  for (int64_t r = 0; r < ranks_->size(); ++r) {
    const std::vector<ShardNode>& nodes = nodes_[static_cast<size_t>(r)];
    ByteReader from(bucket.exchange->from(r));
    const std::span<const uint8_t> elements = from.bytes(nodes.size() * width * sizeof(float));
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::span<const uint8_t> has = from.bytes(bucket.has.size());
      GradSlice of_node{.x = std::vector<float>(width), .has = {has.begin(), has.end()}};
      if (width > 0)
        std::memcpy(
            of_node.x.data(), elements.data() + i * width * sizeof(float), width * sizeof(float));
      tree.add(nodes[i], std::move(of_node));
    }
  }
  GradSlice joined = std::move(tree.nodes().begin()->second);
  bucket.has = std::move(joined.has);
  Bytes bytes;
  append_bytes(bytes, joined.x.data(), width * sizeof(float));
  const std::vector<Communicator::Slice> slices(static_cast<size_t>(ranks_->size()),
                                                {0, std::ssize(bytes)});
  std::vector<int64_t> sizes;
  for (int64_t r = 0; r < ranks_->size(); ++r)
    sizes.push_back(slice(bucket, r).size() * static_cast<int64_t>(sizeof(float)));
  bucket.exchange =
      ranks_->start_exchange(static_cast<int>(2 * b + 1), std::move(bytes), slices, sizes);
  bucket.sent = Bucket::kToAll;
}

void ShardExchange::take_joined(size_t b) {
  Bucket& bucket = buckets_[b];
  const std::vector<size_t>& tensors = plan_.tensors()[b];
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (bucket.has[i] != 0) bucket.joined[i] = Tensor::empty(tensors_[tensors[i]].shape());
  }
  for (int64_t r = 0; r < ranks_->size(); ++r) {
    const Sharding::Interval part = slice(bucket, r);
    const std::span<const uint8_t> bytes = bucket.exchange->from(r);
    for_each_part(bucket.begins, part.begin, part.end, [&](size_t i, int64_t from, int64_t n) {
      if (bucket.has[i] == 0) return;
      std::memcpy(bucket.joined[i].mutable_data() + (from - bucket.begins[i]),
                  bytes.data() + static_cast<size_t>(from - part.begin) * sizeof(float),
                  static_cast<size_t>(n) * sizeof(float));
    });
  }
  bucket.exchange = nullptr;
}

/// Waits until the gradients of all ranks are joined.
void ShardExchange::wait() {
  const auto start = std::chrono::steady_clock::now();
  for (bool joined = false; !joined;) {
    joined = true;
    for (size_t b = 0; b < buckets_.size(); ++b) joined = go_on(b) && joined;
    if (!joined) Communicator::rest(start);
  }
  ranks_->end_exchanges();
  told_ = false;
}

/// Joins the domains of all ranks. Most trainings have none.
void ShardExchange::share_least() {
  Bytes own;
  for (size_t t = 0; t < least_.size(); ++t) {
    if (least_[t] == nullptr) continue;
    append_value(own, uint64_t{t});
    append_value(own, uint64_t{least_[t]->size()});
    append_bytes(own, least_[t]->data(), least_[t]->size() * sizeof(float));
  }
  for (const Bytes& bytes : ranks_->all_gather(own)) {
    for (ByteReader from(bytes); !from.at_end();) {
      const auto t = from.value<uint64_t>();
      std::vector<float> least;
      for (auto left = from.value<uint64_t>(); left > 0; --left)
        least.push_back(from.value<float>());
      if (t >= least_.size())
        throw DistributedError(kShards, "a rank sent another network's state");
      least_[t] =
          larger_least(least_[t], std::make_shared<const std::vector<float>>(std::move(least)));
    }
  }
}

ShardPart ShardExchange::finish() {
  if (own_.size() == 0) {
    tell();
    for (size_t b = 0; ranks_ != nullptr && b < buckets_.size(); ++b) start(b);
  }
  if (ranks_ != nullptr) {
    wait();
    share_least();
  }
  ShardPart part{.loss = losses_.nodes().begin()->second,
                 .grads = Grads(tensors_.size()),
                 .least = std::move(least_)};
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const auto& [number, position] = plan_.of(t);
    Bucket& bucket = buckets_[number];
    Grads& grads = ranks_ != nullptr ? bucket.joined : bucket.own.nodes().begin()->second;
    part.grads[t] = std::move(grads[position]);
  }
  return part;
}

void ShardExchange::fail(const char* error) noexcept {
  if (ranks_ == nullptr) return;
  try {
    if (told_ && !ranks_->failed()) {  // the others wait for these gradients
      for (size_t b = 0; b < buckets_.size(); ++b) {
        Bucket& bucket = buckets_[b];
        if (bucket.sent != Bucket::kWaits) continue;
        if (own_.size() > 0 && bucket.lacking > 0) bucket.own.add(own_.end - 1, bucket.running);
        start(b);
      }
      wait();
    }
  } catch (const std::exception&) {  // then this rank is dead for them
  }
  ranks_->fail(error);
}

}  // namespace quantrain
