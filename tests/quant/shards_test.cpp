#include <map>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "layers/training/data_parallel.hpp"
#include "layers/training/fit.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/observers/spec.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"
#include "tests/thread_ranks.hpp"

namespace quantrain::quant {
namespace {

std::vector<NamedState> copies(const Observer& observer) {
  std::vector<NamedState> all;
  for (const NamedState& entry : observer.state()) all.push_back(entry.copy());
  return all;
}

std::vector<std::vector<float>> numbers(const Observer& observer) {
  std::vector<std::vector<float>> all;
  for (const NamedState& entry : observer.state()) all.push_back(quantrain::test::values(entry));
  return all;
}

void restore_state(const Observer& observer, const std::vector<NamedState>& state) {
  for (size_t i = 0; i < state.size(); ++i) NamedState(observer.state()[i]).copy_values(state[i]);
}

/// Values whose spread grows from batch to batch.
Tensor spread_values(int64_t rows, uint64_t seed) {
  const float reach = 0.1f + static_cast<float>(seed % 7);
  return quantrain::test::random_tensor({rows, 3}, seed, -reach, 2.0f * reach);
}

Tensor rows_of(const Tensor& x, int64_t begin, int64_t end) {
  Tensor part = Tensor::empty({end - begin, x.dim(1)});
  std::copy(x.data() + begin * x.dim(1), x.data() + end * x.dim(1), part.mutable_data());
  return part;
}

/// An observer of one's own, which cannot be joined.
class Own : public Observer {
 public:
  Own() : Observer({}) {}
  std::string_view kind() const override { return "own"; }

 protected:
  void accumulate(const Batch&, std::span<const Range>) override {}
  std::vector<Range> choose_ranges(const QType&, QScheme) const override { return {{0.0f, 1.0f}}; }
  void check_state() const override {}
};

struct Classifier {
  Sequential net;
  Adam optimizer;
  DataLoader loader;

  Classifier(const QConfig& config, int64_t samples = 44)
      : net(make(config)),
        optimizer(net.parameters(), {.learning_rate = 0.01f}),
        loader(images(samples), {.batch = 16, .shuffle = true, .seed = 1}) {}

  static Dataset images(int64_t n) {
    Random random(5);
    std::vector<uint8_t> bytes;
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < n * 16; ++i) bytes.push_back(static_cast<uint8_t>(random.below(256)));
    for (int64_t i = 0; i < n; ++i)
      labels.push_back(bytes[static_cast<size_t>(i * 16)] > 127 ? 1 : 0);
    return Dataset({n, 4, 4, 1}, bytes, labels, 2);
  }
  static Sequential make(const QConfig& config) {
    manual_seed(3);
    Sequential net{Conv2d{1, 4, {.kernel = {3, 3}, .padding = 1}},
                   BatchNorm2d{4},
                   ReLU{},
                   Flatten{},
                   Linear{64, 8},
                   ReLU{},
                   Linear{8, 2}};
    prepare_qat(net, images(8).batch(0, 8).input, config);
    return net;
  }
  FitResult fit(const FitOptions& options) {
    const auto loss = [this](Batch& batch) { return cross_entropy(net(batch.input), batch); };
    return quantrain::fit(net, optimizer, loader, loss, options);
  }
  std::map<std::string, std::vector<float>> values() const {
    std::map<std::string, std::vector<float>> all;
    for (const NamedState& entry : state(net)) all[entry.name] = quantrain::test::values(entry);
    return all;
  }
};

}  // namespace

TEST_CASE("observers of shards see what an observer of the batch sees", "[quant][distributed]") {
  // By extremes or counts; a percentile or a mean is that of each shard.
  const bool whole_batch = GENERATE(true, false);
  const ObserverSpec spec = GENERATE(ObserverSpec(MinMaxOptions{}),
                                     ObserverSpec(RecentMinMaxOptions{.batches = 2}),
                                     ObserverSpec(MovingAverageOptions{.constant = 0.3f}),
                                     ObserverSpec(HistogramOptions{.bins = 64}),
                                     ObserverSpec(EntropyOptions{.bins = 128}));
  const ObserverShape shape = whole_batch ? ObserverShape{} : ObserverShape{1, 3, ""};
  const std::unique_ptr<Observer> whole = make_observer(spec, shape);
  const std::unique_ptr<Observer> joined = make_observer(spec, shape);
  for (uint64_t batch = 0; batch < 9; ++batch) {
    const Tensor x = spread_values(10, batch * 5 + 1);
    whole->observe(x);
    const std::vector<NamedState> before = copies(*joined);
    std::vector<std::vector<NamedState>> after;
    for (const auto& [begin, end] : {std::pair{0, 3}, {3, 6}, {6, 10}}) {
      joined->observe(rows_of(x, begin, end));
      after.push_back(copies(*joined));
      restore_state(*joined, before);
    }
    joined->join_shards(after);
    INFO(joined->kind() << ", batch " << batch);
    CHECK(numbers(*joined) == numbers(*whole));
  }
}

TEST_CASE("a percentile of shards covers each shard's", "[quant][distributed]") {
  const ObserverSpec spec =
      GENERATE(ObserverSpec(PercentileOptions{}), ObserverSpec(MeanStdOptions{}));
  const std::unique_ptr<Observer> joined = make_observer(spec);
  const Tensor x = spread_values(10, 3);
  Range expected{};
  std::vector<std::vector<NamedState>> after;
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 10}}) {
    joined->observe(rows_of(x, begin, end));
    const Range range = joined->ranges({}, QScheme::kAffine)[0];
    expected = after.empty()
                   ? range
                   : Range{std::min(expected.min, range.min), std::max(expected.max, range.max)};
    after.push_back(copies(*joined));
    joined->reset();
  }
  joined->join_shards(after);
  CHECK(joined->ranges({}, QScheme::kAffine)[0].min == expected.min);
  CHECK(joined->ranges({}, QScheme::kAffine)[0].max == expected.max);
  CHECK(joined->count() == 1);
  CHECK(joined->samples() == 10);
}

TEST_CASE("an observer that cannot be joined says so", "[quant][distributed]") {
  Own own;
  own.observe(spread_values(4, 1));
  const std::vector<NamedState> after = copies(own);
  own.reset();
  CHECK_THROWS_WITH(own.join_shards({after, after}),
                    quantrain::test::ContainsSubstring("join_shard()"));
  CHECK(own.count() == 0);
}

TEST_CASE("a network trained in shards converts to the integers that it computes",
          "[quant][distributed]") {
  const int bits = GENERATE(8, 4);
  const bool learned = GENERATE(false, true);
  QConfig config = QConfig::bits(bits, bits);
  if (learned) config.model.weight.estimator = Estimator::kLearned;
  if (learned) config.model.activation.estimator = Estimator::kLearned;
  Classifier training(config);
  training.fit({.epochs = 2, .shards = 8});
  const auto errors = quantrain::test::ThreadRanks(3).run([&](Communicator& ranks) {
    Classifier again(config);
    again.fit({.epochs = 2, .shards = 8, .ranks = &ranks});
    if (again.values() != training.values()) throw DataError("test", "the state differs");
  });
  CHECK(errors == std::vector<std::string>(3));
  const DataLoader test(Classifier::images(20), {.batch = 20});
  const IntegerModel model = convert(training.net, Classifier::images(20).batch(0, 8).input);
  const Parity parity = verify_parity(training.net, model, test);
  CHECK(parity.codes_equal() == 1.0);
  CHECK(parity.logits_equal() == 1.0);
}

}  // namespace quantrain::quant
