#include "layers/training/data_parallel.hpp"

#include <cmath>
#include <map>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/data/stream.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"
#include "tests/catch.hpp"
#include "tests/layers/training/some_rows.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"
#include "tests/thread_ranks.hpp"

namespace quantrain {

using test::some_rows;
using test::TemporaryFolder;
using test::values;

namespace {

/// A network with batch norm and dropout, its optimizer and data.
struct Sharded {
  Sequential net;
  Sgd optimizer;
  DataLoader loader;

  explicit Sharded(int64_t samples = 44, int64_t batch = 16)
      : net(make()),
        optimizer(net.parameters(), {.learning_rate = 0.1f, .momentum = 0.9f}),
        loader(some_rows(samples), {.batch = batch, .shuffle = true, .seed = 1}) {}

  static Sequential make() {
    manual_seed(3);
    return Sequential{Linear{3, 4}, BatchNorm1d{4}, ReLU{}, Dropout{0.25f}, Linear{4, 2}};
  }
  Tensor loss(Batch& batch) { return cross_entropy(net(batch.input), batch.labels); }
  FitResult fit(const FitOptions& options) {
    return quantrain::fit(
        net, optimizer, loader, [this](Batch& batch) { return loss(batch); }, options);
  }
  std::map<std::string, std::vector<float>> state_values() const {
    std::map<std::string, std::vector<float>> all;
    for (const NamedState& entry : state(net)) all[entry.name] = values(entry);
    return all;
  }
};

std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.data(), tensor.data() + tensor.elements()};
}

/// A layer whose pass changes its own parameter.
class Restless : public Module {
 public:
  Restless() { scale_ = add_parameter("scale", Tensor::full({3}, 1.0f)); }
  std::string_view type() const override { return "Restless"; }

 protected:
  Tensor forward(const Tensor& x) override {
    scale_.mutable_data()[0] += 1.0f;
    return mul(x, scale_);
  }

 private:
  Tensor scale_;
};

}  // namespace

TEST_CASE("shards of a batch are joined as the weighted mean of batches of their own",
          "[layers][distributed]") {
  // 13 samples in 3 shards of 4, 4 and 5.
  Sharded joined(13, 13);
  DataParallel parallel(joined.net, joined.optimizer, {.shards = 3});
  ShardedEpoch epoch = parallel.epoch(joined.loader, 0);
  ShardedBatch batch = *epoch.begin();
  REQUIRE(batch.shards.size() == 3);
  const float loss = parallel.backward(
      batch, [&](Batch& shard) { return joined.loss(shard); }, 0.5f);

  // By hand, for each shard with a new network.
  const std::vector<double> samples{4.0, 4.0, 5.0};
  double mean_loss = 0.0;
  std::vector<std::vector<double>> grads;
  std::vector<double> running_mean(4);
  std::vector<double> running_var(4);
  for (size_t s = 0; s < 3; ++s) {
    Sharded own(13, 13);
    ShardedEpoch again = DataParallel(own.net, own.optimizer, {.shards = 3}).epoch(own.loader, 0);
    ShardedBatch same = *again.begin();
    REQUIRE(static_cast<double>(same.shards[s].size()) == samples[s]);
    const ShardScope scope(static_cast<int64_t>(s));
    Tensor y = own.loss(same.shards[s]);
    mean_loss += samples[s] / 13.0 * static_cast<double>(y.item());
    y.backward();
    const std::vector<Tensor> parameters = own.net.parameters();
    grads.resize(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::vector<float> grad = floats_of(parameters[i].grad());
      grads[i].resize(grad.size());
      for (size_t k = 0; k < grad.size(); ++k)
        grads[i][k] += 0.5 * samples[s] / 13.0 * static_cast<double>(grad[k]);
    }
    const auto state = own.state_values();
    for (size_t c = 0; c < 4; ++c) {
      running_mean[c] += samples[s] / 13.0 * static_cast<double>(state.at("1.running_mean")[c]);
      running_var[c] += samples[s] / 13.0 * static_cast<double>(state.at("1.running_var")[c]);
    }
    CHECK(state.at("3.passes") == std::vector<float>{1.0f});
  }
  CHECK(static_cast<double>(loss) == test::Approx(mean_loss));
  const std::vector<Tensor> parameters = joined.net.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<float> grad = floats_of(parameters[i].grad());
    for (size_t k = 0; k < grad.size(); ++k)
      CHECK(std::abs(static_cast<double>(grad[k]) - grads[i][k]) < 1e-7);  // float32 sums
  }
  const auto state = joined.state_values();
  for (size_t c = 0; c < 4; ++c) {
    CHECK(static_cast<double>(state.at("1.running_mean")[c]) == test::Approx(running_mean[c]));
    CHECK(static_cast<double>(state.at("1.running_var")[c]) == test::Approx(running_var[c]));
  }
  CHECK(state.at("3.passes") == std::vector<float>{1.0f});
}

TEST_CASE("shards of equal samples draw different dropouts", "[layers][distributed]") {
  manual_seed(4);
  Sequential net{Dropout{0.5f}, Linear{32, 1}};
  Sgd optimizer(net.parameters(), {.learning_rate = 0.1f});
  const DataLoader loader(Dataset({2, 32}, std::vector<uint8_t>(64, 255), {0, 0}, 1), {.batch = 2});
  DataParallel parallel(net, optimizer, {.shards = 2});
  ShardedEpoch epoch = parallel.epoch(loader, 0);
  std::vector<std::vector<float>> kept;
  ShardedBatch batch = *epoch.begin();
  parallel.backward(batch, [&](Batch& shard) {
    const Tensor y = net.find("0")(shard.input);
    kept.push_back(floats_of(y));
    return mean(net.find("1")(y));
  });
  REQUIRE(kept.size() == 2);
  CHECK(kept[0] != kept[1]);
}

TEST_CASE("fit with one shard keeps the bits of fit without", "[layers][distributed][fit]") {
  Sharded plain;
  plain.fit({.epochs = 2});
  const auto errors = test::ThreadRanks(1).run([&](Communicator& ranks) {
    Sharded one;
    one.fit({.epochs = 2, .shards = 1, .ranks = &ranks});
    CHECK(one.state_values() == plain.state_values());
  });
  CHECK(errors == std::vector<std::string>{""});
  Sharded eight;
  eight.fit({.epochs = 2, .shards = 8});
  CHECK(eight.state_values() != plain.state_values());
}

TEST_CASE("fit with shards is a loop over DataParallel::backward", "[layers][distributed][fit]") {
  Sharded by_fit;
  std::vector<float> seen;
  by_fit.fit({.epochs = 2, .accumulate = 2, .shards = 4, .after_step = [&](int64_t, float loss) {
                seen.push_back(loss);
              }});
  Sharded own;
  std::vector<float> losses;
  DataParallel parallel(own.net, own.optimizer, {.shards = 4});
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    // 44 samples: 16, 16, 12. The third batch makes a step alone.
    int64_t index = 0;
    for (ShardedBatch& batch : parallel.epoch(own.loader, epoch)) {
      CHECK(batch.count == (index == 2 ? 3 : 4));
      if (index != 1) own.optimizer.zero_grad();
      const float loss = parallel.backward(
          batch, [&](Batch& shard) { return own.loss(shard); }, index == 2 ? 1.0f : 0.5f);
      if (index++ == 0) continue;
      own.optimizer.step();
      losses.push_back(loss);
    }
  }
  CHECK(by_fit.state_values() == own.state_values());
  CHECK(seen == losses);
}

TEST_CASE("fit joins the state of slots that begin_epoch fills", "[layers][distributed][fit]") {
  const auto fill = [](Sharded& training) {
    training.net.find("0").slots().output = std::make_shared<BatchNorm1d>(4);
  };
  Sharded before;
  fill(before);
  before.fit({.shards = 4});
  Sharded within;
  within.fit({.shards = 4, .begin_epoch = [&](int64_t) { fill(within); }});
  CHECK(within.state_values() == before.state_values());
}

TEST_CASE("gradients that the user keeps are not added to", "[layers][distributed]") {
  Sharded training;
  DataParallel parallel(training.net, training.optimizer, {.shards = 4});
  ShardedEpoch epoch = parallel.epoch(training.loader, 0);
  auto batches = epoch.begin();
  const auto loss = [&](Batch& shard) { return training.loss(shard); };
  parallel.backward(*batches, loss);
  const Tensor kept = training.net.parameters()[0].grad();
  const std::vector<float> first = floats_of(kept);
  ++batches;
  parallel.backward(*batches, loss);
  CHECK(floats_of(kept) == first);
  CHECK(floats_of(training.net.parameters()[0].grad()) != first);
}

TEST_CASE("a resumed run with shards ends with the same bits", "[layers][distributed][fit]") {
  const TemporaryFolder folder;
  Sharded whole;
  whole.fit({.epochs = 3, .shards = 8});
  const CheckpointOptions checkpoints{.folder = folder / "run", .every = 1, .resume = true};
  {
    Sharded first;
    int64_t left = 5;
    const auto kill = [&](int64_t, float) {
      if (--left == 0) throw DataError("test", "killed");
    };
    CHECK_THROWS_AS(
        first.fit({.epochs = 3, .shards = 8, .after_step = kill, .checkpoints = checkpoints}),
        DataError);
  }
  Sharded other;
  CHECK_THROWS_WITH(other.fit({.epochs = 3, .shards = 4, .checkpoints = checkpoints}),
                    test::ContainsSubstring("8 shards"));
  Sharded resumed;
  resumed.fit({.epochs = 3, .shards = 8, .checkpoints = checkpoints});
  CHECK(resumed.state_values() == whole.state_values());
}

TEST_CASE("each rank reads only its shards", "[layers][distributed][data]") {
  const Dataset all = some_rows(44);
  const DataLoader loader(all, {.batch = 16, .shuffle = true, .seed = 9});
  const auto inputs = [](auto&& batches) {
    std::vector<std::vector<float>> rows;
    for (auto& batch : batches) rows.push_back(floats_of(batch.input));
    return rows;
  };
  const auto one = inputs(loader.sharded({.shards = 5}).epoch(2));
  REQUIRE(one.size() == 5 + 5 + 3);  // of 16, 16 and 12 samples
  std::vector<std::vector<float>> of_batch(one.begin(), one.begin() + 5);
  std::vector<float> joined;
  for (const auto& rows : of_batch) joined.insert(joined.end(), rows.begin(), rows.end());
  CHECK(joined == inputs(DataLoader(loader).epoch(2)).front());
  for (const int64_t ranks : {2, 3, 7}) {
    std::vector<std::vector<float>> first;
    size_t count = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Sharding sharding{.shards = 5, .rank = rank, .ranks = ranks};
      const auto rows = inputs(loader.sharded(sharding).epoch(2));
      count += rows.size();
      for (int64_t s = 0; s < sharding.own(5).size(); ++s)
        first.push_back(rows[static_cast<size_t>(s)]);
    }
    CHECK(count == one.size());
    CHECK(first == of_batch);
  }
}

TEST_CASE("a rank that reads a stream skips the samples of others", "[layers][distributed][data]") {
  int checked = 0;
  const auto start = [&](int64_t epoch) -> SampleGenerator {
    return [&checked, epoch, n = 0]() mutable -> std::optional<StreamSample> {
      ++checked;
      return StreamSample{{static_cast<float>(epoch), static_cast<float>(n++)}};
    };
  };
  const DataLoader loader(Stream(start, {.shape = {2}, .samples = 10}), {.batch = 4});
  std::vector<float> seen;
  for (const Batch& shard : loader.sharded({.shards = 2, .rank = 1, .ranks = 2}).epoch(3))
    for (int64_t i = 0; i < shard.size(); ++i) seen.push_back(shard.input.data()[2 * i + 1]);
  // Batches 0-3, 4-7, 8-9; the last one has a single shard, of rank 1: [0 .. 1) of 2 ranks.
  CHECK(seen == std::vector<float>{2, 3, 6, 7, 8, 9});
  CHECK(checked == 10);  // a stream generates all samples

  // A source of any order is asked for no sample of another rank.
  class Asked : public BatchSource {
   public:
    explicit Asked(std::vector<int64_t>& read) : read_(read) {}
    std::optional<int64_t> samples() const override { return 10; }
    bool any_order() const override { return true; }
    Reader read(const Pass&) const override {
      return [this](std::span<const int64_t> indices) {
        read_.insert(read_.end(), indices.begin(), indices.end());
        Batch batch;
        batch.input = Tensor::full({std::ssize(indices), 1}, 0.0f);
        return batch;
      };
    }

   private:
    std::vector<int64_t>& read_;
  };
  std::vector<int64_t> asked;
  for (const Batch& shard : DataLoader(Asked(asked), {.batch = 4})
                                .sharded({.shards = 2, .rank = 1, .ranks = 2})
                                .epoch(3))
    CHECK(shard.size() == 2);
  CHECK(asked == std::vector<int64_t>{2, 3, 6, 7, 8, 9});

  class InTurn : public BatchSource {
   public:
    std::optional<int64_t> samples() const override { return 4; }
    bool any_order() const override { return false; }
    Reader read(const Pass&) const override { return nullptr; }
  };
  CHECK_THROWS_WITH(DataLoader(InTurn(), {.batch = 4}).sharded({.shards = 2, .ranks = 2}),
                    test::ContainsSubstring("can_skip"));
}

TEST_CASE("wrong shards are refused", "[layers][distributed]") {
  Sharded training;
  CHECK_THROWS_WITH(training.fit({.shards = -1}), test::ContainsSubstring("shards is -1"));
  CHECK_THROWS_WITH(training.fit({.shards = 17}), test::ContainsSubstring("17 shards"));
  CHECK_THROWS_WITH(training.fit({.shards = 17}), test::ContainsSubstring("at most 16"));
  CHECK_THROWS_AS(DataParallel(training.net, training.optimizer, {.shards = 0}), DataError);
  CHECK_THROWS_AS(training.loader.sharded({.shards = 4, .rank = 2, .ranks = 2}), DataError);
  CHECK_THROWS_AS(training.loader.batch_size(3), DataError);
  CHECK(training.loader.batch_size(2) == 12);
  // 16 samples in 16 shards: batch norm needs two values.
  CHECK_THROWS_AS(training.fit({.shards = 16}), ShapeError);
}

TEST_CASE("a shard that fails leaves gradients and statistics as they were",
          "[layers][distributed]") {
  Sharded training;
  DataParallel parallel(training.net, training.optimizer, {.shards = 4});
  ShardedEpoch epoch = parallel.epoch(training.loader, 0);
  auto batches = epoch.begin();
  parallel.backward(*batches, [&](Batch& shard) { return training.loss(shard); });
  const auto before = training.state_values();
  const std::vector<float> grad = floats_of(training.net.parameters()[0].grad());
  ++batches;
  int left = 3;
  CHECK_THROWS_WITH(parallel.backward(*batches,
                                      [&](Batch& shard) {
                                        if (--left == 0) throw DataError("test", "no more");
                                        return training.loss(shard);
                                      }),
                    test::ContainsSubstring("no more"));
  CHECK(training.state_values() == before);
  CHECK(floats_of(training.net.parameters()[0].grad()) == grad);
}

TEST_CASE("a parameter that a pass changes by itself is refused", "[layers][distributed]") {
  Restless net;
  Sgd optimizer(net.parameters(), {.learning_rate = 0.1f});
  DataLoader loader(some_rows(8), {.batch = 8});
  CHECK_THROWS_WITH(fit(net,
                        optimizer,
                        loader,
                        [&](Batch& batch) { return mean(net(batch.input)); },
                        {.shards = 2}),
                    test::ContainsSubstring("changed \"scale\" by itself"));
}

TEST_CASE("the state of a shard of another network is refused", "[layers][distributed]") {
  Sharded training;
  PassState pass(training.net);
  pass.keep();
  training.net.find("1").named_buffers()[0].tensor.mutable_data()[0] = 9.0f;
  const std::vector<uint8_t> changes = pass.changes();
  REQUIRE(changes.size() == 2 * sizeof(uint64_t) + 4 * sizeof(float));
  const auto join = [&](std::vector<uint8_t> bytes) { pass.join({std::move(bytes)}, {{16}}); };
  CHECK_THROWS_AS(join({changes.begin(), changes.end() - 1}), DistributedError);
  for (const size_t number : {size_t{0}, size_t{8}}) {  // of the layer, and of the buffer
    std::vector<uint8_t> other = changes;
    other[number] = 9;
    CHECK_THROWS_WITH(join(other), test::ContainsSubstring("another network's state"));
  }
}

}  // namespace quantrain
