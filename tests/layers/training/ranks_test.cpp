#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/optim/adam.hpp"
#include "layers/evaluate.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/data_parallel.hpp"
#include "layers/training/fit.hpp"
#include "tests/catch.hpp"
#include "tests/layers/training/some_rows.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"
#include "tests/thread_ranks.hpp"

namespace quantrain {

using test::some_rows;
using test::TemporaryFolder;
using test::ThreadRanks;

namespace {

using Values = std::map<std::string, std::vector<float>>;

/// A network with batch norm and dropout, its optimizer and data: augmented, mixed up, and with a
/// last batch that is smaller.
struct Trained {
  Sequential net;
  Adam optimizer;
  DataLoader loader;

  explicit Trained(uint64_t seed = 3)
      : net(make(seed)),
        optimizer(net.parameters(), {.learning_rate = 0.01f}),
        loader(some_rows(44),
               {.batch = 16,
                .shuffle = true,
                .seed = 1,
                .augment = gaussian_noise(0.1f),
                .mixup = 0.2}) {}

  static Sequential make(uint64_t seed) {
    manual_seed(seed);
    return Sequential{Linear{3, 4}, BatchNorm1d{4}, ReLU{}, Dropout{0.25f}, Linear{4, 2}};
  }
  FitResult fit(FitOptions options) {
    options.evaluate = [this] {
      return evaluate(net, DataLoader(some_rows(20), {.batch = 7}), {"accuracy"});
    };
    const auto loss = [this](Batch& batch) { return cross_entropy(net(batch.input), batch); };
    return quantrain::fit(net, optimizer, loader, loss, options);
  }
  Values values() const {
    Values all;
    for (const NamedState& entry : state(net)) all[entry.name] = test::values(entry);
    for (const NamedState& entry : optimizer.state()) all[entry.name] = test::values(entry);
    return all;
  }
};

std::vector<std::string> none(int64_t ranks) {
  return std::vector<std::string>(static_cast<size_t>(ranks));
}

}  // namespace

TEST_CASE("a trained network does not depend on the number of ranks", "[layers][distributed]") {
  const FitOptions options{.epochs = 2, .accumulate = 2, .shards = 8, .clip_norm = 0.5f};
  Trained alone;
  const FitResult expected = alone.fit(options);
  for (const int64_t size : {1, 2, 3, 5, 8, 9}) {
    std::vector<Values> values(static_cast<size_t>(size));
    std::vector<FitResult> results(static_cast<size_t>(size));
    const auto errors = ThreadRanks(size).run([&](Communicator& ranks) {
      Trained training;
      FitOptions own = options;
      own.ranks = &ranks;
      const auto rank = static_cast<size_t>(ranks.rank());
      results[rank] = training.fit(own);
      values[rank] = training.values();
    });
    INFO(size << " ranks");
    CHECK(errors == none(size));
    for (const Values& of_rank : values) CHECK(of_rank == alone.values());
    for (const FitResult& result : results) {
      REQUIRE(result.epochs.size() == 2);
      CHECK(result.epochs[1].loss == expected.epochs[1].loss);
      CHECK(result.epochs[1].metrics == expected.epochs[1].metrics);
    }
  }
}

TEST_CASE("a rank sends about twice the gradients", "[layers][distributed]") {
  constexpr int64_t kSize = 64;
  const int64_t size = GENERATE(2, 4, 8);
  std::vector<int64_t> sent(static_cast<size_t>(size));
  const auto errors = ThreadRanks(size).run([&](Communicator& ranks) {
    Linear net = [] {
      Generator generator(3);
      return Linear{kSize, kSize, {}, generator};
    }();
    Adam optimizer(net.parameters());
    DataLoader loader(
        Dataset({8, kSize}, std::vector<uint8_t>(8 * kSize, 9), {0, 0, 0, 0, 0, 0, 0, 0}, 1),
        {.batch = 8});
    DataParallel parallel(net, optimizer, {.shards = 8, .ranks = &ranks});
    const ShardedEpoch epoch = parallel.epoch(loader, 0);
    ShardedBatch batch = *epoch.begin();
    parallel.backward(batch, [&](Batch& shard) { return mean(net(shard.input)); });
    sent[static_cast<size_t>(ranks.rank())] = ranks.bytes_sent();
  });
  CHECK(errors == none(size));
  const double gradients = 4.0 * kSize * (kSize + 1);
  for (const int64_t bytes : sent) {
    CHECK(static_cast<double>(bytes) < 2.1 * gradients);
    CHECK(static_cast<double>(bytes) > 0.9 * gradients);
  }
}

namespace {

using Loss = std::function<Tensor(Sequential& net, Batch& shard)>;

/// y = x. Its backward pass calls a function.
class CallingNode : public Node {
 public:
  explicit CallingNode(std::function<void()> call) : call_(std::move(call)) {}
  std::string_view type() const override { return "calling"; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    call_();
    return {std::move(grad_y)};
  }

 private:
  std::function<void()> call_;
};

/// Of each parameter, in their order.
struct Gradients {
  std::vector<std::vector<float>> values;  // empty where there is none
  std::vector<int64_t> sent;               // bytes that each rank sent
  std::vector<std::string> errors;         // of each rank
};

/// The gradients of two layers after one batch of 8 samples in 4 shards. Each layer has 3 inputs;
/// with 8192 outputs, its gradients are sent without those of the other.
Gradients gradients(int64_t size, int64_t outputs, const Loss& loss) {
  Gradients all;
  all.sent.resize(static_cast<size_t>(size));
  std::mutex mutex;
  all.errors = ThreadRanks(size).run([&](Communicator& ranks) {
    Generator generator(3);
    Sequential net{Linear{3, outputs, {}, generator}, Linear{3, outputs, {}, generator}};
    Adam optimizer(net.parameters());
    DataLoader loader(some_rows(8), {.batch = 8});
    DataParallel parallel(net, optimizer, {.shards = 4, .ranks = &ranks});
    const ShardedEpoch epoch = parallel.epoch(loader, 0);
    ShardedBatch batch = *epoch.begin();
    parallel.backward(batch, [&](Batch& shard) { return loss(net, shard); });
    all.sent[static_cast<size_t>(ranks.rank())] = ranks.bytes_sent();
    std::vector<std::vector<float>> own;
    for (const Tensor& parameter : net.parameters())
      own.push_back(parameter.grad().defined() ? test::values(parameter.grad())
                                               : std::vector<float>());
    const std::lock_guard lock(mutex);
    all.values = std::move(own);
  });
  return all;
}

/// The same, and checks that 2 to 5 ranks have it. Of 5 ranks, one has no shard.
Gradients same_gradients(int64_t outputs, const Loss& loss) {
  const Gradients alone = gradients(1, outputs, loss);
  CHECK(alone.errors == none(1));
  for (int64_t size = 2; size <= 5; ++size) {
    INFO(size << " ranks");
    const Gradients several = gradients(size, outputs, loss);
    CHECK(several.errors == none(size));
    CHECK((several.values == alone.values));  // too many to print
  }
  return alone;
}

Tensor mean_of(Sequential& net, int64_t layer, const Tensor& x) {
  return mean(net.find(std::to_string(layer))(x));
}

constexpr int64_t kWide = 8192;

}  // namespace

TEST_CASE("a gradient that only some shards have is joined", "[layers][distributed]") {
  const Gradients some = same_gradients(GENERATE(2, kWide), [](Sequential& net, Batch& shard) {
    return mean_of(net, ShardScope::current() == 2 ? 1 : 0, shard.input);
  });
  for (const std::vector<float>& values : some.values) CHECK_FALSE(values.empty());
}

TEST_CASE("a parameter that no shard uses has no gradient", "[layers][distributed]") {
  const Gradients some = same_gradients(GENERATE(2, kWide), [](Sequential& net, Batch& shard) {
    return mean_of(net, 0, shard.input);
  });
  REQUIRE(some.values.size() == 4);
  CHECK_FALSE(some.values[0].empty());
  CHECK(some.values[2].empty());
  CHECK(some.values[3].empty());
}

TEST_CASE("a frozen layer's gradients are not sent", "[layers][distributed]") {
  const Loss loss = [](Sequential& net, Batch& shard) {
    for (Tensor parameter : net.find("1").parameters()) parameter.set_requires_grad(false);
    return add(mean_of(net, 0, shard.input), mean_of(net, 1, shard.input));
  };
  const Gradients some = same_gradients(kWide, loss);
  REQUIRE(some.values.size() == 4);
  CHECK_FALSE(some.values[0].empty());
  CHECK(some.values[2].empty());
  // Two ranks send one layer's gradients: half to be joined, and half joined.
  constexpr int64_t kLayer = 4 * 4 * kWide;
  for (const int64_t bytes : gradients(2, kWide, loss).sent) CHECK(bytes < 3 * kLayer / 2);
}

TEST_CASE("a frozen layer whose gradient the loss sets gets it", "[layers][distributed]") {
  const int64_t only = GENERATE(-1, 1, 3);  // a shard that sets it; -1: all
  const Tensor ones = Tensor::full({kWide}, 1.0f);
  const Gradients some = same_gradients(kWide, [&](Sequential& net, Batch& shard) {
    Tensor bias = net.find("1").parameters()[1];
    bias.set_requires_grad(false);
    if (only < 0 || ShardScope::current() == only) bias.set_grad(ones);
    return mean_of(net, 0, shard.input);
  });
  REQUIRE(some.values.size() == 4);
  CHECK(some.values[2].empty());
  CHECK((some.values[3] == std::vector<float>(kWide, only < 0 ? 1.0f : 0.25f)));
  CHECK((test::values(ones) == std::vector<float>(kWide, 1.0f)));
}

TEST_CASE("gradients may be ready in another order in each rank", "[layers][distributed]") {
  const Gradients some = same_gradients(kWide, [](Sequential& net, Batch& shard) {
    const int64_t first = ShardScope::current() / 2 % 2;  // the backward pass ends with it
    const Tensor a = mean_of(net, first, shard.input);
    return add(a, mean_of(net, 1 - first, shard.input));
  });
  for (const std::vector<float>& values : some.values) CHECK_FALSE(values.empty());
}

TEST_CASE("gradients that a loss computes by itself are joined like all others",
          "[layers][distributed]") {
  const Gradients some = same_gradients(2, [](Sequential& net, Batch& shard) {
    // The shards 0 and 3 lie in different ranks, and their loss depends on layer 0 alone.
    const bool by_itself = ShardScope::current() % 3 == 0;
    if (by_itself) mean_of(net, 1, shard.input).backward();
    return mean_of(net, by_itself ? 0 : 1, shard.input);
  });
  REQUIRE(some.values.size() == 4);
  // Of the mean of two outputs, over all shards of layer 1, and over two of four of layer 0.
  CHECK(some.values[3] == std::vector<float>{0.5f, 0.5f});
  CHECK(some.values[1] == std::vector<float>{0.25f, 0.25f});
}

TEST_CASE("a tensor that a node sets as a gradient keeps its values", "[layers][distributed]") {
  const Tensor ones = Tensor::full({2}, 1.0f);
  const Gradients some = same_gradients(2, [&](Sequential& net, Batch& shard) {
    const Tensor x = Tensor::full({1}, 1.0f).set_requires_grad(true);
    const Tensor y = record<CallingNode>(
        x.detach(), {x}, [&] { Tensor(net.find("1").parameters()[1]).set_grad(ones); });
    return add(mean(y), mean_of(net, 0, shard.input));
  });
  REQUIRE(some.values.size() == 4);
  CHECK(some.values[3] == std::vector<float>{4.0f, 4.0f});  // the sum over four shards
  CHECK(test::values(ones) == std::vector<float>{1.0f, 1.0f});
}

TEST_CASE("a gradient that comes after it was sent is refused", "[layers][distributed]") {
  const Loss loss = [](Sequential& net, Batch& shard) {
    const Tensor x = Tensor::full({1}, 1.0f).set_requires_grad(true);
    // Its backward pass comes last, because it is recorded first.
    const Tensor y = record<CallingNode>(
        x.detach(), {x}, [&net, input = shard.input] { mean_of(net, 1, input).backward(); });
    return add(mean(y), mean_of(net, 1, shard.input));
  };
  CHECK(gradients(1, 2, loss).errors == none(1));
  for (const std::string& error : gradients(2, 2, loss).errors)
    CHECK(error.find("\"1.weight\" got a gradient that the graph does not show") !=
          std::string::npos);
}

TEST_CASE("checkpoints of some ranks are resumed by any number", "[layers][distributed][fit]") {
  Trained whole;
  const FitResult expected = whole.fit({.epochs = 3, .shards = 8});
  const TemporaryFolder folder;
  CheckpointOptions checkpoints{.folder = folder / "run", .every = 1, .resume = true};
  int64_t left = 2;
  for (const int64_t size : {3, 2, 5}) {  // each makes two steps and then dies
    const auto errors = ThreadRanks(size).run([&](Communicator& ranks) {
      Trained training;
      int64_t steps = left;
      FitOptions options{.epochs = 3, .shards = 8, .ranks = &ranks, .checkpoints = checkpoints};
      options.after_step = [&](int64_t, float) {
        if (ranks.rank() == ranks.size() - 1 && steps-- == 0) throw DataError("test", "killed");
      };
      training.fit(options);
    });
    for (const std::string& error : errors) CHECK_FALSE(error.empty());
    CHECK(errors[0].find("killed") != std::string::npos);
  }
  std::vector<Values> values(4);
  const auto errors = ThreadRanks(4).run([&](Communicator& ranks) {
    Trained training;
    const FitResult result =
        training.fit({.epochs = 3, .shards = 8, .ranks = &ranks, .checkpoints = checkpoints});
    values[static_cast<size_t>(ranks.rank())] = training.values();
    CHECK(result.run.size() == 16);
    CHECK(result.epochs.size() == 3);
    CHECK(result.epochs[2].loss == expected.epochs[2].loss);
  });
  CHECK(errors == none(4));
  for (const Values& of_rank : values) CHECK(of_rank == whole.values());
}

TEST_CASE("only rank 0 writes", "[layers][distributed][fit]") {
  const TemporaryFolder folder;
  const auto errors = ThreadRanks(3).run([&](Communicator& ranks) {
    Trained training;
    const std::string own = folder / ("rank" + std::to_string(ranks.rank()));
    training.fit({.epochs = 1,
                  .ranks = &ranks,
                  .checkpoints = {.folder = own},
                  .log = own + ".log",
                  .page = own + ".html"});
  });
  CHECK(errors == none(3));
  CHECK(folder.files() == 3);
  CHECK(std::filesystem::exists(folder / "rank0.log"));
}

TEST_CASE("a rank that does not fit is refused by name", "[layers][distributed][fit]") {
  const auto errors_of = [](const std::function<void(int64_t rank, Trained&, FitOptions&)>& change,
                            uint64_t seed = 3) {
    return ThreadRanks(3).run([&](Communicator& ranks) {
      Trained training(ranks.rank() == 1 ? seed : 3);
      FitOptions options{.epochs = 1, .ranks = &ranks};
      if (change) change(ranks.rank(), training, options);
      training.fit(options);
    });
  };
  const auto check = [](const std::vector<std::string>& errors, const std::string& text) {
    for (const std::string& error : errors) {
      CHECK(error.find("rank 1 does not fit") != std::string::npos);
      CHECK(error.find(text) != std::string::npos);
    }
  };
  check(errors_of([](int64_t rank, Trained&, FitOptions& o) { o.epochs = rank == 1 ? 2 : 1; }),
        "epochs is 2, in rank 0 1");
  check(errors_of([](int64_t rank, Trained&, FitOptions& o) { o.shards = rank == 1 ? 4 : 8; }),
        "shards is 4, in rank 0 8");
  check(errors_of([](int64_t rank, Trained& training, FitOptions&) {
          LoaderOptions options = training.loader.options();
          options.seed = rank == 1 ? 7 : 1;
          training.loader = DataLoader(training.loader.source(), options);
        }),
        "seed is 7, in rank 0 1");
  check(errors_of([](int64_t rank, Trained& training, FitOptions&) {
          if (rank == 1) training.loader = DataLoader(some_rows(45), training.loader.options());
        }),
        "samples is 45, in rank 0 44");
  check(errors_of([](int64_t rank, Trained&, FitOptions& o) {
          o.early_stopping = {
              .metric = "accuracy", .smaller_is_better = false, .restore_best = rank != 1};
        }),
        "early_stopping.restore_best is off, in rank 0 on");
  check(errors_of(nullptr, 4), "0.weight is [4, 3] with hash");
}

TEST_CASE("a rank whose layers have other options is refused", "[layers][distributed][fit]") {
  struct Case {
    uint64_t seed;
    float p;
    float momentum;
    const char* text;
  };
  const Case other = GENERATE(Case{8, 0.25f, 0.1f, "layer 2 is Dropout p=0.25 seed="},
                              Case{7, 0.5f, 0.1f, "layer 2 is Dropout p=0.5 seed="},
                              Case{7, 0.25f, 0.2f, "layer 1 is BatchNorm1d epsilon="});
  const auto errors = ThreadRanks(2).run([&](Communicator& ranks) {
    const Case own = ranks.rank() == 1 ? other : Case{7, 0.25f, 0.1f, ""};
    Generator weights(3);
    Generator drops(own.seed);
    Sequential net{Linear{3, 2, {}, weights},
                   BatchNorm1d{2, {.momentum = own.momentum}},
                   Dropout{own.p, drops}};
    Adam optimizer(net.parameters());
    DataLoader loader(some_rows(16), {.batch = 16});
    quantrain::fit(net,
                   optimizer,
                   loader,
                   [&](Batch& batch) { return cross_entropy(net(batch.input), batch); },
                   {.ranks = &ranks});
  });
  for (const std::string& error : errors)
    CHECK(error.find("rank 1 does not fit: " + std::string(other.text)) != std::string::npos);
}

TEST_CASE("a rank without a loss ends the others", "[layers][distributed][fit]") {
  const auto errors = ThreadRanks(2).run([&](Communicator& ranks) {
    Trained training;
    const auto loss = [&](Batch& batch) { return cross_entropy(training.net(batch.input), batch); };
    const bool has = ranks.rank() == 0;
    quantrain::fit(training.net,
                   training.optimizer,
                   training.loader,
                   has ? std::function<Tensor(Batch&)>(loss) : nullptr,
                   {.ranks = &ranks});
  });
  CHECK(errors[0].find("rank 1 failed: [fit] there is no loss") != std::string::npos);
}

TEST_CASE("a rank that leaves an exchange by an exception is dead for the others",
          "[layers][distributed]") {
  const auto errors = ThreadRanks(3).run([&](Communicator& ranks) {
    ranks.barrier();
    ranks.expect_exchanges();
    if (ranks.rank() == 1) {
      ranks.fail("no memory");  // must not meet the others' exchange
      throw DataError("test", "no memory");
    }
    const auto exchange = ranks.start_exchange(
        0, Communicator::Bytes(1), std::vector<Communicator::Slice>(3, {0, 1}), {1, 1, 1});
    while (!exchange->test()) std::this_thread::yield();
  });
  CHECK(errors[0].find("rank 1 died") != std::string::npos);
  CHECK(errors[1].find("no memory") != std::string::npos);
  CHECK(errors[2].find("rank 1 died") != std::string::npos);
}

namespace {

/// Two layers of 128 x 128, whose gradients are joined one after the other. call runs in the
/// backward pass, between the layers. Returns what the ranks threw.
std::vector<std::string> errors_of_two_layers(
    int64_t size, const std::function<void(Communicator&, const Tensor& first)>& call) {
  return ThreadRanks(size).run([&](Communicator& ranks) {
    Generator generator(3);
    Sequential net{Linear{128, 128, {}, generator}, Linear{128, 128, {}, generator}};
    Adam optimizer(net.parameters());
    DataLoader loader(
        Dataset({8, 128}, std::vector<uint8_t>(8 * 128, 9), std::vector<int32_t>(8), 1),
        {.batch = 8});
    DataParallel parallel(net, optimizer, {.shards = 4, .ranks = &ranks});
    const ShardedEpoch epoch = parallel.epoch(loader, 0);
    ShardedBatch batch = *epoch.begin();
    parallel.backward(batch, [&](Batch& shard) {
      const Tensor x = net.find("0")(shard.input);
      const Tensor y =
          record<CallingNode>(x.detach(), {x}, [&] { call(ranks, net.parameters()[0]); });
      return mean(net.find("1")(y));
    });
  });
}

}  // namespace

TEST_CASE("gradients are sent before the backward pass ends", "[layers][distributed]") {
  constexpr int64_t kLayer = 4 * 128 * 129;
  std::vector<int64_t> sent(2);
  const auto errors = errors_of_two_layers(2, [&](Communicator& ranks, const Tensor& first) {
    // The last shard's is the one that stays.
    sent[static_cast<size_t>(ranks.rank())] = first.grad().defined() ? 0 : ranks.bytes_sent();
  });
  CHECK(errors == none(2));
  for (const int64_t bytes : sent) CHECK(bytes > kLayer / 2);
}

TEST_CASE("a rank that fails in a backward pass ends the others with its text",
          "[layers][distributed]") {
  const int64_t size = GENERATE(2, 3, 5);  // of 5, one has no shard
  int passes = 0;
  std::mutex mutex;
  const auto errors = errors_of_two_layers(size, [&](Communicator& ranks, const Tensor&) {
    const std::lock_guard lock(mutex);
    const int64_t last = Sharding{.shards = 4, .rank = 1, .ranks = size}.own(4).size();
    if (ranks.rank() == 1 && ++passes == last) throw DataError("test", "no gradient");
  });
  for (int64_t rank = 0; rank < size; ++rank) {
    const std::string expected =
        rank == 1 ? "[test] no gradient" : "rank 1 failed: [test] no gradient";
    CHECK(errors[static_cast<size_t>(rank)].find(expected) != std::string::npos);
  }
}

TEST_CASE("a rank whose state leaves the others' is found after the epoch",
          "[layers][distributed][fit]") {
  const auto errors = ThreadRanks(2).run([&](Communicator& ranks) {
    Trained training;
    training.fit({.epochs = 3, .ranks = &ranks, .after_step = [&](int64_t step, float) {
                    if (ranks.rank() == 1 && step == 2)
                      training.net.parameters()[0].mutable_data()[0] = 9.0f;
                  }});
  });
  for (const std::string& error : errors)
    CHECK(error.find("rank 1 does not fit: 0.weight is") != std::string::npos);
}

TEST_CASE("a rank that fails or dies ends the others with its name", "[layers][distributed][fit]") {
  const bool dies = GENERATE(false, true);
  const TemporaryFolder folder;
  ThreadRanks all(4);
  const auto errors = all.run([&](Communicator& ranks) {
    Trained training;
    training.fit({.epochs = 2,
                  .ranks = &ranks,
                  .after_step =
                      [&](int64_t step, float) {
                        if (ranks.rank() != 2 || step != 4) return;
                        if (dies) all.kill(2);
                        throw DataError("test", "no more memory");
                      },
                  .checkpoints = {.folder = folder / "run"}});
  });
  CHECK(errors[2].find("no more memory") != std::string::npos);
  for (const size_t rank : {size_t{0}, size_t{1}, size_t{3}}) {
    CHECK(errors[rank].find(dies ? "rank 2 died" : "rank 2 failed: [test] no more memory") !=
          std::string::npos);
    CHECK(errors[rank].find("the last checkpoint is that of step 3 in ") != std::string::npos);
  }
  // A resumed run names the checkpoint that it began with.
  const auto resumed = ThreadRanks(2).run([&](Communicator& ranks) {
    Trained training;
    training.fit({.epochs = 2,
                  .ranks = &ranks,
                  .after_step =
                      [&](int64_t, float) {
                        if (ranks.rank() == 1) throw DataError("test", "no more memory");
                      },
                  .checkpoints = {.folder = folder / "run", .resume = true}});
  });
  CHECK(resumed[0].find("the last checkpoint is that of step 3 in ") != std::string::npos);
}

}  // namespace quantrain
