#include "layers/dropout.hpp"

#include "framework/autograd/ops/dropout.hpp"
#include "framework/core/error.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/distributed/sharding.hpp"

namespace quantrain {
Dropout::Dropout(float p, Generator& generator) : p_(p), seed_(generator.next_stream().bits()) {
  check();
  passes_ = add_buffer("passes", IntegerBuffer({}, {.least = 0, .most = kMostCount}));
}

Dropout::Dropout(const Members& members)
    : p_(members.p), seed_(static_cast<uint64_t>(members.seed)) {
  check();
  IntegerBuffer passes = members.passes;
  if (!passes.defined()) passes = IntegerBuffer({}, {.least = 0, .most = kMostCount});
  if (!(passes.shape() == Shape{}) || passes.least() < 0)
    throw DataError("Dropout", "passes are not one count, but integers ", passes.shape());
  passes_ = add_buffer("passes", std::move(passes));
}

void Dropout::check() const {
  if (!(p_ >= 0.0f && p_ < 1.0f)) throw DataError("Dropout", "p must be in [0, 1): ", p_);
}

uint64_t Dropout::next_pass() {
  const int64_t pass = passes_.item();
  passes_.fill(pass + 1);
  return static_cast<uint64_t>(pass);
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training()) return x;
  const auto shard = static_cast<uint64_t>(ShardScope::current());
  const uint64_t seed = shard == 0 ? seed_ : SplitMix64::key(seed_, shard, 0);
  return dropout(x, {.p = p_, .seed = seed, .counter = next_pass()});
}

}  // namespace quantrain
