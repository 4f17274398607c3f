#include "layers/training/data_parallel.hpp"

#include <algorithm>
#include <utility>

#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/distributed/shard_tree.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "data_parallel";

/// left + right. A gradient shares its memory with nothing else, so the sum takes that of the left.
Tensor sum(Tensor left, const Tensor& right) {
  if (!left.defined()) return right;
  if (!right.defined()) return left;
  float* const y = left.mutable_data();
  kernels::add_f32(left.elements(), y, right.data(), y);
  return left;
}

}  // namespace

ShardedEpoch::ShardedEpoch(const DataLoader& loader, const Sharding& sharding, int64_t epoch)
    : loader_(loader.sharded(sharding).epoch(epoch)), sharding_(sharding) {}

ShardedEpoch::Iterator::Iterator(const ShardedEpoch& epoch)
    : epoch_(&epoch), shards_(epoch.loader_.begin()) {
  read();
}

ShardedEpoch::Iterator& ShardedEpoch::Iterator::operator++() {
  ++index_;
  read();
  return *this;
}

void ShardedEpoch::Iterator::read() {
  const DataLoader& loader = epoch_->loader_;
  if (index_ == loader.batches()) return;
  const int64_t samples = loader.batch_size(index_);
  const int64_t count = epoch_->sharding_.count(samples, loader.options().batch);
  batch_ = {.samples = samples, .count = count, .own = epoch_->sharding_.own(count)};
  for (int64_t i = 0; i < batch_.own.size(); ++i) {
    batch_.shards.push_back(std::move(*shards_));
    ++shards_;
  }
}

DataParallel::DataParallel(Module& net, Optimizer& optimizer, DataParallelOptions options)
    : net_(net), options_(std::move(options)), state_(net) {
  if (options_.shards < 1)
    throw DataError(kWhere, "shards is ", options_.shards, ", expected at least 1");
  sharding_.shards = options_.shards;
  const auto add = [this](const Tensor& tensor) {
    const auto same = [&](const Tensor& known) { return known.same_as(tensor); };
    if (std::none_of(tensors_.begin(), tensors_.end(), same)) tensors_.push_back(tensor);
  };
  for (const Tensor& parameter : optimizer.parameters()) add(parameter);
  for (const NamedState& entry : net.named_parameters()) {
    add(entry.tensor);
    if (!state_.contains(entry.tensor)) unchanged_.push_back(entry);
  }
  for (const NamedState& entry : options_.also) {
    if (entry.holds_integers()) continue;
    add(entry.tensor);
    unchanged_.push_back(entry);
  }
}

ShardedEpoch DataParallel::epoch(const DataLoader& loader, int64_t epoch) const {
  return {loader, sharding_, epoch};
}

DataParallel::Part DataParallel::join(Part left, Part right) {
  left.loss += right.loss;
  for (size_t i = 0; i < left.grads.size(); ++i)
    left.grads[i] = sum(std::move(left.grads[i]), right.grads[i]);
  return left;
}

std::vector<Tensor> DataParallel::take_grads() {
  std::vector<Tensor> grads;
  for (Tensor& tensor : tensors_) {
    grads.push_back(tensor.grad());
    tensor.zero_grad();
  }
  return grads;
}

DataParallel::Part DataParallel::compute(Batch& shard,
                                         const std::function<Tensor(Batch&)>& loss,
                                         float weight) {
  const auto samples = static_cast<double>(shard.size());
  std::vector<uint64_t> versions;
  for (const NamedState& entry : unchanged_) versions.push_back(entry.tensor.version());
  Tensor y = loss(shard);
  for (size_t i = 0; i < unchanged_.size(); ++i) {
    if (unchanged_[i].tensor.version() == versions[i]) continue;
    throw GraphError(kWhere,
                     "the pass changed \"",
                     unchanged_[i].name,
                     "\" by itself, which cannot be joined: make it a buffer of its layer, list it "
                     "in Module::pass_state(), or change it after the step");
  }
  if (y.elements() != 1)
    throw ShapeError(
        kWhere, "the loss has shape ", y.shape(), ", expected one number, such as mean(...)");
  const double value = samples * static_cast<double>(y.item());
  if (weight != 1.0f) y = mul(y, Tensor::full(y.shape(), weight));
  y.backward();
  return {value, take_grads()};
}

float DataParallel::backward(ShardedBatch& batch,
                             const std::function<Tensor(Batch&)>& loss,
                             float share) {
  const DefaultRounding rounding;
  const auto samples_of = [&](int64_t shard) {
    return Sharding::part(batch.samples, batch.count, shard).size();
  };
  std::vector<Tensor> grads = take_grads();  // of earlier batches of the same step
  ShardTree<Part> tree(batch.count, join);
  std::vector<std::vector<uint8_t>> changes;
  std::vector<int64_t> samples;
  state_.keep();
  try {
    for (int64_t shard = batch.own.begin; shard < batch.own.end; ++shard) {
      const ShardScope scope(shard);
      const double part =
          static_cast<double>(samples_of(shard)) / static_cast<double>(batch.samples);
      Batch& own = batch.shards[static_cast<size_t>(shard - batch.own.begin)];
      tree.add(shard, compute(own, loss, static_cast<float>(part * static_cast<double>(share))));
      changes.push_back(state_.changes());
      samples.push_back(samples_of(shard));
      state_.restore();
    }
    state_.join(changes, samples);
  } catch (...) {
    state_.restore();
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].set_grad(std::move(grads[i]));
    throw;
  }
  Part& joined = tree.nodes().begin()->second;
  for (size_t i = 0; i < tensors_.size(); ++i)
    tensors_[i].set_grad(sum(std::move(grads[i]), joined.grads[i]));
  return static_cast<float>(joined.loss / static_cast<double>(batch.samples));
}

}  // namespace quantrain
