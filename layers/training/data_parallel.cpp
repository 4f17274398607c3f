#include "layers/training/data_parallel.hpp"

#include <algorithm>
#include <utility>

#include "framework/autograd/ops/mul.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "framework/core/hash.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/version.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "layers/network/layer_type.hpp"
#include "layers/state.hpp"

namespace quantrain {
namespace {

constexpr const char* kParallel = "data_parallel";

std::string description_of(const NamedState& entry) {
  Fnv1a hash;
  hash.add(entry.bytes());
  TextStream text;
  text << entry.shape() << " with hash " << hash.value();
  return text.str();
}

/// Instruction sets whose float kernels give the same bits have the same text.
std::string float_kernels() {
  switch (chosen_isa()) {
    case Isa::kAvx2:
    case Isa::kAvxVnni:
    case Isa::kAvx512Bw:
    case Isa::kAvx512Vnni:
    case Isa::kAmx: return "AVX2 or AVX-512";
    case Isa::kNeon64:
    case Isa::kNeon64Dot:
    case Isa::kNeon64I8mm: return "NEON";
    case Isa::kReference:
    case Isa::kSse2: break;
  }
  return std::string(isa_name(chosen_isa()));
}

/// The type of a layer and, if its type is known, its options.
std::string description_of(const Module& layer) {
  TextStream text;
  text.precision(9);  // all digits of a float32
  text << layer.type();
  const LayerType* const type = find_layer_type(layer);
  if (type == nullptr) return text.str();
  const LayerMembers members = type->members(layer);
  if (!members.options.empty()) text << ' ' << members.options;
  return text.str();
}

/// factor * x, in memory of its own: users may hold x.
Tensor scaled(const Tensor& x, float factor) {
  Tensor y = Tensor::empty(x.shape());
  const Floats from = x.floats();
  kernels::affine_f32(y.elements(), from, factor, -0.0f, y.mutable_data());  // keeps -0
  return y;
}

/// How the slots of a prepared network are filled.
std::string description_of(const Preparation* preparation, const Module& net) {
  if (preparation == nullptr) return "none";
  try {
    Fnv1a hash;
    hash.add(preparation->describe(net));
    return "one with hash " + std::to_string(hash.value());
  } catch (const QuantError&) {  // a slot of the user's own, which no file describes
    return "unknown";
  }
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
    : net_(net), optimizer_(optimizer), options_(std::move(options)), state_(net) {
  if (options_.shards < 1)
    throw DataError(kParallel, "shards is ", options_.shards, ", expected at least 1");
  sharding_.shards = options_.shards;
  if (options_.ranks != nullptr) {
    sharding_.rank = options_.ranks->rank();
    sharding_.ranks = options_.ranks->size();
  }
  const auto add = [this](const Tensor& tensor) {
    if (indices_.emplace(TensorAccess::identity(tensor), tensors_.size()).second)
      tensors_.push_back(tensor);
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
  buckets_.emplace(tensors_);
}

ShardedEpoch DataParallel::epoch(const DataLoader& loader, int64_t epoch) const {
  return {loader, sharding_, epoch};
}

ShardPart DataParallel::take() {
  ShardPart part;
  for (Tensor& tensor : tensors_) {
    part.grads.push_back(tensor.grad());
    part.least.push_back(TensorAccess::least(tensor));
    tensor.zero_grad();
    TensorAccess::set_least(tensor, nullptr);
  }
  return part;
}

Tensor DataParallel::forward(Batch& shard, const std::function<Tensor(Batch&)>& loss) {
  std::vector<uint64_t> versions;
  for (const NamedState& entry : unchanged_) versions.push_back(entry.tensor.version());
  Tensor y = loss(shard);
  for (size_t i = 0; i < unchanged_.size(); ++i) {
    if (unchanged_[i].tensor.version() == versions[i]) continue;
    throw GraphError(kParallel,
                     "the pass changed \"",
                     unchanged_[i].name,
                     "\" by itself, which cannot be joined: make it a buffer of its layer, list it "
                     "in Module::pass_state(), or change it after the step");
  }
  if (y.elements() != 1)
    throw ShapeError(
        kParallel, "the loss has shape ", y.shape(), ", expected one number, such as mean(...)");
  return y;
}

std::string DataParallel::name_of(const Tensor& tensor) const {
  const auto is_this = [&](const NamedState& entry) { return entry.tensor.same_as(tensor); };
  for (const auto& all : {net_.named_parameters(), options_.also}) {
    const auto found = std::find_if(all.begin(), all.end(), is_this);
    if (found != all.end()) return found->name;
  }
  return "a parameter of the optimizer";
}

void DataParallel::backward(
    int64_t shard, Tensor y, float weight, ShardExchange& exchange, bool sends) {
  // What the loss has set, or computed in a backward pass of its own.
  for (Tensor& tensor : tensors_) {
    if (tensor.grad().defined()) tensor.set_grad(scaled(tensor.grad(), weight));
  }
  if (weight != 1.0f) y = mul(y, Tensor::full(y.shape(), weight));
  const auto add = [&](size_t t) {
    Tensor& tensor = tensors_[t];
    Tensor grad = tensor.grad();
    const TensorAccess::Least least = TensorAccess::least(tensor);
    if (!grad.defined() && least == nullptr) return;
    tensor.zero_grad();
    TensorAccess::set_least(tensor, nullptr);
    // The sum over the shards may take the gradient's memory. A node may have set one of the
    // user's.
    if (grad.defined() && !TensorAccess::is_sole(grad)) grad = scaled(grad, 1.0f);
    if (!exchange.add(shard, t, std::move(grad), least))
      throw GraphError(
          kParallel,
          "\"",
          name_of(tensor),
          "\" got a gradient that the graph does not show, after the others were sent: "
          "make it an input of the node that computes the gradient");
  };
  if (sends) {
    TensorAccess::backward(y, [&](Tensor& leaf) {
      const auto found = indices_.find(TensorAccess::identity(leaf));
      if (found != indices_.end()) add(found->second);
    });
  } else {
    y.backward();
  }
  // Also what y does not depend on.
  for (size_t t = 0; t < tensors_.size(); ++t) add(t);
  exchange.end_shard(shard);
}

void DataParallel::check_same(std::vector<Fact> facts) const {
  if (options_.ranks == nullptr) return;
  static const std::string program = program_hash();
  facts.insert(facts.begin(),
               {{"quantrain", std::string(version())},
                {"the program", program},
                {"float kernels", float_kernels()},
                {"shards", std::to_string(options_.shards)}});
  for (const NamedModule& entry : net_.named_modules())
    facts.emplace_back(entry.name.empty() ? "the network" : "layer " + entry.name,
                       description_of(*entry.module));
  facts.emplace_back("preparation", description_of(net_.slots().preparation.get(), net_));
  const auto add = [&](const std::string& of, const std::vector<NamedState>& state) {
    for (const NamedState& entry : state)
      facts.emplace_back(of + entry.name, description_of(entry));
  };
  add("", state(net_));
  add("optimizer.", optimizer_.state());
  add("also.", options_.also);
  check_agreement(*options_.ranks, kParallel, facts);
}

float DataParallel::backward(ShardedBatch& batch,
                             const std::function<Tensor(Batch&)>& loss,
                             float share) {
  const DefaultRounding rounding;
  std::vector<int64_t> samples;
  for (int64_t shard = 0; shard < batch.count; ++shard)
    samples.push_back(Sharding::part(batch.samples, batch.count, shard).size());
  ShardPart before = take();  // of earlier batches of the same step
  Communicator* const ranks = sharding_.ranks > 1 ? options_.ranks : nullptr;
  ShardExchange exchange(tensors_, *buckets_, sharding_, batch.count, ranks);
  state_.keep();
  const auto put_back = [&](const char* error) {
    state_.restore();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i].set_grad(before.grads[i]);
      TensorAccess::set_least(tensors_[i], before.least[i]);
    }
    exchange.fail(error);
    if (options_.ranks != nullptr) options_.ranks->fail(error);
  };
  try {
    for (int64_t shard = batch.own.begin; shard < batch.own.end; ++shard) {
      const ShardScope scope(shard);
      const auto n = static_cast<double>(samples[static_cast<size_t>(shard)]);
      const double part = n / static_cast<double>(batch.samples);
      Tensor y = forward(batch.shards[static_cast<size_t>(shard - batch.own.begin)], loss);
      exchange.add_pass(shard, n * static_cast<double>(y.item()), state_.changes());
      backward(shard,
               std::move(y),
               static_cast<float>(part * static_cast<double>(share)),
               exchange,
               ranks != nullptr && shard + 1 == batch.own.end);
      state_.restore();
    }
    ShardPart joined = exchange.finish();
    state_.join(exchange.changes(), samples);
    // In memory of its own: others may share that of the gradients from before.
    joined.grads = sum_of(std::move(joined.grads), before.grads);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i].set_grad(joined.grads[i]);
      TensorAccess::set_least(tensors_[i],
                              joined.least[i] == nullptr ? before.least[i] : joined.least[i]);
    }
    return static_cast<float>(joined.loss / static_cast<double>(batch.samples));
  } catch (const std::exception& error) {
    put_back(error.what());
    throw;
  } catch (...) {
    put_back("an exception that is no std::exception");
    throw;
  }
}

}  // namespace quantrain
