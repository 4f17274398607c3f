#include "tests/proofs/rare_events.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "examples/common/training.hpp"
#include "framework/autograd/ops/mse_loss.hpp"
#include "framework/core/random.hpp"
#include "framework/metrics/metrics.hpp"

namespace quantrain::proofs {
namespace {

constexpr int64_t kSamples = 8192;
constexpr int64_t kRareSamples = 1024;  // unseen ones
constexpr int64_t kPeriod = 256;        // one training sample of this number is rare
constexpr int64_t kInputs = 4;
constexpr int64_t kLength = 32;

TensorDataset steps(int64_t samples, uint64_t seed, bool only_rare) {
  std::vector<float> x;
  std::vector<float> y;
  for (int64_t i = 0; i < samples; ++i) {
    Random random(seed, only_rare ? 1 : 0, static_cast<uint64_t>(i));
    const float size = only_rare || i % kPeriod == 0 ? 1.0f : 0.1f;
    float v[kInputs];
    for (float& each : v) x.push_back(each = size * random.uniform(-1.0f, 1.0f));
    y.push_back(6.0f * std::abs(v[0]) + 4.0f * v[1] - 2.0f * std::max(v[2], v[3]));
  }
  return {SampleArray::encoded({samples, kInputs}, x, {-1.0f, 1.0f}),
          SampleArray::floats({samples, 1}, std::move(y))};
}

TensorDataset peaks(int64_t samples, uint64_t seed, bool only_rare) {
  std::vector<float> x;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < samples; ++i) {
    Random random(seed, only_rare ? 3 : 2, static_cast<uint64_t>(i));
    const auto label = only_rare || i % kPeriod == 0 ? 2 : static_cast<int32_t>(i % 2);
    const float height = label == 0 ? 0.0f : label == 1 ? 0.2f : random.uniform(0.5f, 1.0f);
    const int64_t centre = random.below(kLength);
    for (int64_t t = 0; t < kLength; ++t) {
      const auto distance = static_cast<float>(std::abs(t - centre));
      const float bump = height * std::max(1.0f - 0.34f * distance, 0.0f);
      x.push_back(std::clamp(bump + 0.03f * random.normal(), -1.0f, 1.0f));
    }
    labels.push_back(label);
  }
  return {SampleArray::encoded({samples, kLength}, x, {-1.0f, 1.0f}), Labels{labels, 3}};
}

}  // namespace

RareEvents rare_steps(uint64_t seed) {
  TensorDataset rare = steps(kRareSamples, seed, true);
  std::vector<int64_t> all(kRareSamples);
  std::iota(all.begin(), all.end(), int64_t{0});
  const Tensor targets = std::get<std::vector<SampleArray>>(rare.targets())[0].tensor(all);
  return {
      .name = "rare steps",
      .score = "rmse",
      .smaller_is_better = true,
      .make =
          [] {
            const Linear::Options plain{.bias = false};  // 10 x gives 10 y
            return Sequential{Linear{kInputs, 32, plain},
                              ReLU{},
                              Linear{32, 16, plain},
                              ReLU{},
                              Linear{16, 1, plain}};
          },
      .training = steps(kSamples, seed, false),
      .rare = std::move(rare),
      .loss = [](Module& net,
                 Batch& batch) { return mse_loss(net(std::move(batch.input)), batch.targets[0]); },
      .measure =
          [targets](const Tensor& outputs) {
            return std::sqrt(mean_squared_error(outputs, targets));
          }};
}

RareEvents rare_peaks(uint64_t seed) {
  TensorDataset rare = peaks(kRareSamples, seed, true);
  return {
      .name = "rare peaks",
      .score = "recall %",
      .make =
          [] {
            return Sequential{Linear{kLength, 32}, ReLU{}, Linear{32, 16}, ReLU{}, Linear{16, 3}};
          },
      .training = peaks(kSamples, seed, false),
      .rare = rare,
      .loss = examples::classification_loss,
      .measure =
          [labels = rare.labels()](const Tensor& outputs) {
            ConfusionMatrix matrix(3);
            matrix.add(outputs, labels);
            return 100.0 * matrix.recall(2);
          }};
}

}  // namespace quantrain::proofs
