#include <algorithm>
#include <cfenv>
#include <iterator>

#include "framework/autograd/ops.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/features.hpp"
#include "framework/data/loader.hpp"
#include "framework/integer/program_file.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/clip.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/init.hpp"
#include "layers/state.hpp"
#include "quant/analysis/ranges.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::TemporaryFolder;

/// All results of a program that goes from data to a deployed network.
std::vector<float> all_of_it() {
  manual_seed(3);
  Random random(1);
  std::vector<float> rows;
  for (int i = 0; i < 40 * 12; ++i) rows.push_back(random.uniform(-3.0f, 5.0f));
  std::vector<int32_t> labels;
  for (int i = 0; i < 40; ++i) labels.push_back(i % 4);
  const Dataset data =
      Dataset::from_floats({40, 12}, rows, labels, 4, {-2.5f, 2.5f}, fit_mean_std(rows, 12));
  DataLoader loader(data, {.batch = 8, .shuffle = true});
  Sequential net{Linear{12, 9}, BatchNorm1d{9}, ReLU{}, Linear{9, 4}};
  const Tensor example = data.batch(0, 1).input;
  Adam optimizer{net.parameters(), {.learning_rate = 1e-2f}};
  const Schedule schedule = cosine_schedule(1e-2f, {.steps = 20, .warm_up = 3});
  int64_t step = 0;
  std::vector<float> results;
  const auto train = [&](int64_t epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      Tensor loss =
          add(cross_entropy(net(batch.input), batch.labels),
              mul(mean(mul(net.parameters()[0], net.parameters()[0])), Tensor::full({1}, 0.1f)));
      optimizer.zero_grad();
      loss.backward();
      results.push_back(clip_grad_norm(net.parameters(), 0.5f));
      optimizer.set_learning_rate(schedule(step++));
      optimizer.step();
      results.push_back(loss.item());
    }
  };
  train(0);
  prepare_qat(net, example, QConfig::int8());
  train(1);
  for (const NamedState& entry : state(net)) {
    const std::vector<float> all = quantrain::test::values(entry);
    results.insert(results.end(), all.begin(), all.end());
  }
  // In evaluation, the scales of weights follow the running statistics of the batch norm.
  net.eval();
  for (const SlotRange& slot : ranges(net).slots)
    results.insert(results.end(), slot.params->scale.begin(), slot.params->scale.end());
  const IntegerModel model = convert(net, example);
  const TemporaryFolder folder;
  model.save(folder / "model");
  const IntegerModel loaded = IntegerModel::load(folder / "model");
  for (const uint64_t hash : {model.hash(), loaded.hash()}) {
    for (int i = 0; i < 4; ++i) results.push_back(static_cast<float>(hash >> (16 * i) & 0xffff));
  }
  std::vector<float> logits(40 * 4);
  loaded.run(rows, logits);
  results.insert(results.end(), logits.begin(), logits.end());
  return results;
}

/// The parameters that observers choose from a few batches, and the quantization noise with these
/// parameters. The numbers are doubles, because a conversion to float would round.
std::vector<double> observed(const std::vector<Tensor>& batches) {
  std::vector<double> results;
  for (const ObserverSpec& observer : observer_specs()) {
    for (const int bits : {8, 3}) {
      FakeQuantize quantizer({.type = {.bits = bits}, .observer = observer});
      for (const Tensor& x : batches) {
        quantizer.calibrate(x);
        const QParams params = quantizer.params();
        results.insert(results.end(), params.scale.begin(), params.scale.end());
        results.insert(results.end(), params.zero_point.begin(), params.zero_point.end());
        results.push_back(quantizer.quantization_noise(x));
      }
    }
  }
  return results;
}

}  // namespace

TEST_CASE("what observers choose does not depend on the rounding mode of the caller",
          "[quant][rounding][long]") {
  std::vector<Tensor> batches;
  for (uint64_t seed = 0; seed < 20; ++seed)
    batches.push_back(quantrain::test::random_tensor({64, 10}, seed));
  const std::vector<double> nearest = observed(batches);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    if (quantrain::test::kSanitized && mode != FE_UPWARD) continue;
    std::fesetround(mode);
    const std::vector<double> other = observed(batches);
    std::fesetround(FE_TONEAREST);
    CAPTURE(mode);
    CHECK(other == nearest);
  }
}

TEST_CASE("weights, integers and logits do not depend on the rounding mode of the caller",
          "[quant][rounding]") {
  const std::vector<float> nearest = all_of_it();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    for (const int threads : quantrain::test::thread_counts({1, 3})) {
      std::fesetround(mode);
      set_threads(threads);  // workers start in this mode
      const std::vector<float> other = all_of_it();
      CHECK(std::fegetround() == mode);
      std::fesetround(FE_TONEAREST);
      set_threads(0);
      CAPTURE(mode, threads);
      REQUIRE(other.size() == nearest.size());
      const auto [first, second] = std::mismatch(other.begin(), other.end(), nearest.begin());
      CHECK(first - other.begin() == std::ssize(nearest));  // the position of the first difference
    }
  }
}

}  // namespace quantrain::quant
