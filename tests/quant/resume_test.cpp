#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/optim/adam.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"
#include "quant/methods/gradual_bits.hpp"
#include "quant/methods/oscillation.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/quant/networks.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// The thread sanitizer cannot follow a forked child with threads.
#if !defined(QUANTRAIN_SANITIZE_THREAD)
namespace quantrain::quant {

using quantrain::test::Child;
using quantrain::test::in_child;
using quantrain::test::TemporaryFolder;
using quantrain::test::values;

namespace {

constexpr int64_t kEpochs = 3;
constexpr int64_t kSteps = 5 * kEpochs;

Dataset some_images() {
  Random random(9);
  std::vector<uint8_t> bytes(38 * 64);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < 38; ++i) labels.push_back(i % 4);
  return Dataset({38, 8, 8, 1}, bytes, labels, 4);
}

Sequential dropped_net() {
  return Sequential{Conv2d{1, 4, {.kernel = 3, .bias = false}},
                    BatchNorm2d{4},
                    ReLU{},
                    Flatten{},
                    Dropout{0.2f},
                    Linear{144, 4}};
}

/// What is trained: methods have state of their own in slots and in the run.
enum class Trained { kFloat, kQuantized, kMethods };

/// Trains for three epochs. Kills the process after step `last`, or never if it is 0. Returns a
/// string that holds the best epoch, the bytes of each epoch's loss, and the bytes of the final
/// states of the network and the optimizer.
std::string run(const std::string& folder, int64_t last, Trained kind, int threads) {
  const bool quantized = kind != Trained::kFloat;
  set_threads(threads);
  manual_seed(4);
  Sequential net = dropped_net();
  if (quantized) {
    QConfig config = QConfig::bits(4, 4);
    config.model.activation.estimator = Estimator::kLearned;
    if (kind == Trained::kMethods) {
      config.model.activation.estimator = Estimator::kLearnedOffset;
      config.model.weight.estimator = Estimator::kLearned;
      config.model.weight.first_bits = config.model.activation.first_bits = 6;
    }
    prepare_qat(net, some_images().batch(0, 8).input, config);
  }
  Adam optimizer(net.parameters(), {.learning_rate = 0.01f});
  DataLoader loader(some_images(),
                    {.batch = 8, .shuffle = true, .seed = 2, .augment = random_shift(1)});
  const auto loss = [&](Batch& batch) { return cross_entropy(net(batch.input), batch.labels); };
  const auto accuracy = [&] {
    double sum = 0.0;
    for (const float x : values(net(some_images().batch(0, 38).input)))
      sum += static_cast<double>(x);
    return Metrics{{"sum", sum}};
  };
  std::optional<OscillationFreezing> freezing;
  if (kind == Trained::kMethods)
    freezing.emplace(net, OscillationOptions{.threshold = 0.1f, .momentum = 0.3f});
  FitOptions options{.epochs = kEpochs,
                     .schedule = cosine_schedule(0.01f, {.steps = kSteps}),
                     .evaluate = accuracy,
                     .after_step =
                         [&](int64_t step, float) {
                           if (freezing) freezing->step();
                           if (step == last) quantrain::test::kill_child();
                         },
                     .early_stopping = {.metric = "sum", .smaller_is_better = false}};
  if (quantized) {
    options.begin_epoch = [&](int64_t epoch) {
      if (kind == Trained::kMethods) lower_bits(net, epoch);
      if (epoch == 1) freeze_batch_norms(net);
      if (epoch == 2) freeze(net);
    };
  }
  if (freezing) options.also = freezing->state();
  if (!folder.empty()) options.checkpoints = {.folder = folder, .every = 2, .resume = true};
  const FitResult result = fit(net, optimizer, loader, loss, options);
  std::string all = std::to_string(result.best_epoch.value_or(-1));
  for (const EpochReport& epoch : result.epochs) {
    const auto* const bytes = reinterpret_cast<const char*>(&epoch.loss);
    all.append(bytes, sizeof epoch.loss);
  }
  const auto add = [&all](const std::vector<NamedState>& entries) {
    for (const NamedState& entry : entries) all.append(entry.bytes().begin(), entry.bytes().end());
  };
  add(state(net));
  add(optimizer.state());
  add(options.also);
  return all;
}

}  // namespace

TEST_CASE("a run killed after any step and resumed ends with the same bits", "[quant][resume]") {
  for (const Trained kind : {Trained::kFloat, Trained::kQuantized, Trained::kMethods}) {
    CAPTURE(kind);
    const Child whole = in_child([&] { return run("", 0, kind, 1); });
    REQUIRE(whole.text.size() > 1000);
    for (int64_t last = 1; last <= kSteps; last += quantrain::test::kSanitized ? 3 : 1) {
      CAPTURE(last);
      const TemporaryFolder folder;
      CHECK(in_child([&] { return run(folder.path(), last, kind, 1); }).was_killed);
      // The resumed run is killed, too, unless fewer than four steps are left.
      const int64_t again = last + 4 <= kSteps ? last + 4 : 0;
      in_child([&] { return run(folder.path(), again, kind, 1); });
      const Child resumed = in_child([&] { return run(folder.path(), 0, kind, 1); });
      CHECK((resumed.text == whole.text));
      // The run has ended, so it trains no further.
      CHECK((in_child([&] { return run(folder.path(), 0, kind, 1); }).text == whole.text));
    }
  }
}

TEST_CASE("a checkpoint of a float network is refused by a prepared one", "[quant][resume]") {
  const TemporaryFolder folder;
  in_child([&] { return run(folder.path(), 3, Trained::kFloat, 1); });
  const Child child = in_child([&] { return run(folder.path(), 0, Trained::kQuantized, 1); });
  CHECK(child.text.find("step-000000000002.safetensors: lacks \"net.") != std::string::npos);
}

}  // namespace quantrain::quant
#endif
