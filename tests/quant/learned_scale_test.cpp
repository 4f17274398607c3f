#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "framework/data/loader.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/rmsprop.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/state.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {

using quantrain::test::make_leaf;
using quantrain::test::values;
using test::check_parity;
using test::random_images;

namespace {

QConfig learned_config(int bits) {
  QConfig config = QConfig::bits(bits, bits);
  config.model.weight.estimator = Estimator::kLearned;
  config.model.activation.estimator = Estimator::kLearned;
  return config;
}

/// y = x / 2, prepared, with this weight scale.
Sequential half(float scale) {
  Sequential net{Linear{1, 1}};
  Tensor weight = net.parameters()[0];
  Tensor bias = net.parameters()[1];
  weight.mutable_data()[0] = 0.5f;
  bias.mutable_data()[0] = 0.0f;
  prepare_qat(net, random_images({4, 1}, 1), learned_config(8));
  Tensor learned_scale = weight_quantizer(net, "0").parameters()[0];
  learned_scale.mutable_data()[0] = scale;
  return net;
}

float scale_of(Sequential& net) { return weight_quantizer(net, "0").parameters()[0].data()[0]; }

/// An optimizer as a user writes one.
class Signs : public Optimizer {
 public:
  Signs(std::vector<Tensor> parameters, float rate)
      : Optimizer("signs", std::move(parameters), rate) {}

 protected:
  void update(size_t, Tensor& parameter, const Tensor& grad) override {
    float* const w = parameter.mutable_data();
    for (int64_t i = 0; i < parameter.elements(); ++i)
      w[i] -= learning_rate() * std::copysign(1.0f, grad.data()[i]);
  }
};

/// Images of 8x8 pixels: a bright row tells the class, among noise.
Dataset bright_rows(int64_t n) {
  Random random(7);
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const auto label = static_cast<int32_t>(random.below(8));
    for (int64_t p = 0; p < 64; ++p)
      bytes.push_back(static_cast<uint8_t>(random.below(200) + (p / 8 == label ? 55 : 0)));
    labels.push_back(label);
  }
  return Dataset({n, 8, 8, 1}, bytes, labels, 8);
}

struct Stuck {
  int64_t scales = 0;
  int64_t not_positive = 0;
  int64_t saturated = 0;  ///< scales of weights of which at least 95 % are clamped
};

/// Counts the weight scales of the network that cannot learn. Where every weight is clamped and a
/// batch norm follows, the gradient of scale and weights is 0.
Stuck stuck(Sequential& net, const std::vector<const char*>& layers, int bits) {
  const NoGrad no_grad;
  Stuck count;
  const float most = static_cast<float>((1 << (bits - 1)) - 1) + 0.5f;
  for (const char* layer : layers) {
    const WeightQuantizer& quantizer = weight_quantizer(net, layer);
    Weights own{net.find(layer).parameters()[0], {}};
    if (quantizer.folding()) own = fold_batch_norm(own, *quantizer.folding());
    const Tensor scales = weight_quantizer(net, layer).parameters()[0];
    const std::vector<float> w = values(own.weight);
    const int64_t inner = own.weight.elements() / scales.elements();
    for (int64_t c = 0; c < scales.elements(); ++c) {
      const float scale = scales.data()[c];
      const auto first = w.begin() + c * inner;
      const int64_t clamped = std::count_if(
          first, first + inner, [&](float v) { return std::abs(v) > most * std::abs(scale); });
      ++count.scales;
      count.not_positive += scale > 0.0f ? 0 : 1;
      count.saturated += 20 * clamped >= 19 * inner ? 1 : 0;
    }
  }
  for (const NamedState& entry : net.named_parameters()) {
    if (!entry.name.ends_with("output_slot.scale")) continue;
    ++count.scales;
    count.not_positive += entry.tensor.data()[0] > 0.0f ? 0 : 1;
  }
  return count;
}

}  // namespace

TEST_CASE("a negative learned scale means its magnitude", "[quant][learned]") {
  // The code of 0.5 is 0.5 / 0.004 = 125. If the scale is clamped to 1e-8 instead, y(1) is 1.3e-6.
  Sequential net = half(-0.004f);
  net.eval();
  Dataset ones({1, 1}, {255}, {0}, 1);
  const Tensor x = ones.batch(0, 1).input;
  CHECK(net(x).item() == quantrain::test::Approx(0.5).epsilon(1e-6));
  check_parity(net, convert(net, x), x);

  SECTION("so an earlier state loads, and a training pass writes the magnitude") {
    const quantrain::test::TemporaryFolder folder;
    save(net, folder / "net");
    Sequential other = half(1.0f);
    load(other, folder / "net");
    CHECK(scale_of(other) == -0.004f);
    other.eval();
    CHECK(other(x).item() == quantrain::test::Approx(0.5).epsilon(1e-6));
    CHECK(scale_of(other) == -0.004f);  // evaluation writes nothing
    other.train();
    other(x);
    CHECK(scale_of(other) == 0.004f);
  }
  SECTION("so does one of an activation") {
    FakeQuantizeConfig config = FakeQuantizeConfig::q8();
    config.estimator = Estimator::kLearned;
    FakeQuantize q(config);
    const Tensor values_in = Tensor::from({1, 2}, std::vector<float>{0.25f, 0.5f});
    q(values_in);
    Tensor scale = q.parameters()[0];
    scale.mutable_data()[0] = -0.25f;
    q.eval();
    CHECK(values(q(values_in)) == std::vector<float>{0.25f, 0.5f});
    CHECK(scale.data()[0] == -0.25f);
    q.train();
    CHECK(values(q(values_in)) == std::vector<float>{0.25f, 0.5f});
    CHECK(scale.data()[0] == 0.25f);
  }
}

TEST_CASE("every optimizer keeps a learned scale at mean|x| / qmax or above", "[quant][learned]") {
  using Make = std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)>;
  const Make make = GENERATE(
      Make([](auto p) { return std::make_unique<Sgd>(p, SgdOptions{.learning_rate = 10.0f}); }),
      Make([](auto p) { return std::make_unique<Adam>(p, AdamOptions{.learning_rate = 10.0f}); }),
      Make([](auto p) { return std::make_unique<AdamW>(p, AdamWOptions{.learning_rate = 10.0f}); }),
      Make([](auto p) {
        return std::make_unique<RmsProp>(p, RmsPropOptions{.learning_rate = 10.0f});
      }),
      Make([](auto p) { return std::make_unique<Signs>(p, 10.0f); }));
  FakeQuantizeConfig config = FakeQuantizeConfig::int4();
  config.estimator = Estimator::kLearned;
  FakeQuantize q(config);
  // mean|x| = 1. With codes -7 to 7, the least scale is 1/7.
  const Tensor x = Tensor::from({1, 4}, std::vector<float>{0.5f, -1.5f, 1.75f, 0.25f});
  q(x);
  const std::unique_ptr<Optimizer> optimizer = make(q.parameters());
  Tensor scale = q.parameters()[0];
  sum(q(x)).backward();
  scale.set_grad(Tensor::full({1}, 1.0f));  // a step of -10 or so, whatever the optimizer
  optimizer->step();
  CHECK(scale.data()[0] == 1.0f / 7.0f);
  CHECK(q.params().scale[0] == 1.0f / 7.0f);
  for (int i = 0; i < 3; ++i) {
    optimizer->zero_grad();
    mse_loss(q(x), Tensor::full({1, 4}, 0.0f)).backward();
    optimizer->step();
    CHECK(scale.data()[0] >= 1.0f / 7.0f);
  }
}

TEST_CASE("a step that stays above the least scale has the bits of the optimizer's own",
          "[quant][learned]") {
  const QParams params{{.bits = 4, .is_signed = true, .narrow = true}, -1, {0.5f}, {0}};
  Tensor x = make_leaf({1, 4}, {0.6f, -1.0f, 1.0f, -0.2f});  // mean 0.7, so the least scale is 0.1
  Tensor scale = make_leaf({1}, {0.5f});
  sum(mul(fake_quantize_learned(x, scale, params), x)).backward();
  const float grad = scale.grad().data()[0];
  REQUIRE(std::abs(grad) > 0.01f);
  Sgd({scale}, {.learning_rate = 0.01f}).step();
  CHECK(scale.data()[0] == 0.5f - 0.01f * grad);
}

TEST_CASE("the least scale counts each channel's values and the codes on the wider side",
          "[quant][learned]") {
  // Codes 0 to 15, zero points 3 and 13: at most 12 and 13 steps from zero.
  const QParams params{{.bits = 4}, 0, {0.5f, 0.5f, 0.5f}, {3, 13, 0}};
  Tensor x = make_leaf({3, 2}, {3.0f, -9.0f, 2.0f, -11.0f, 0.0f, 0.0f});
  Tensor scale = make_leaf({3}, {0.5f, 0.5f, 0.5f});
  sum(fake_quantize_learned(x, scale, params)).backward();
  scale.set_grad(Tensor::full({3}, 1.0f));
  Sgd(std::vector<Tensor>{scale}, {.learning_rate = 10.0f}).step();
  CHECK(scale.data()[0] == 0.5f);  // 6 / 12
  CHECK(scale.data()[1] == 0.5f);  // 6.5 / 13
  CHECK(scale.data()[2] == 0.5f);  // values that are all 0 say nothing: it stays
}

TEST_CASE("LSQ's gradient is the published one at the least scale and below", "[quant][learned]") {
  const float scale_value = GENERATE(1.0f / 7.0f, 0.01f, 1e-6f);
  CAPTURE(scale_value);
  const QType type{.bits = 4, .is_signed = true, .narrow = true};
  const QParams params{type, -1, {scale_value}, {0}};
  const std::vector<float> x_values{0.5f, -1.5f, 1.75f, 0.25f};
  const std::vector<float> grad_y{1.0f, -2.0f, 0.5f, 3.0f};
  Tensor x = make_leaf({1, 4}, x_values);
  Tensor scale = make_leaf({1}, {scale_value});
  sum(mul(fake_quantize_learned(x, scale, params), Tensor::from({1, 4}, grad_y))).backward();
  double published = 0.0;  // Esser et al. 2020, equation 3
  double difference = 0.0;
  const auto y = [&](double v, double s) {
    return s * std::clamp(std::nearbyint(v / s), -7.0, 7.0);
  };
  bool all_clamped = true;
  for (size_t i = 0; i < x_values.size(); ++i) {
    const auto v = static_cast<double>(x_values[i]);
    const auto s = static_cast<double>(scale_value);
    const auto g = static_cast<double>(grad_y[i]);
    const double ratio = v / s;
    published += g * (ratio <= -7.0 ? -7.0 : ratio >= 7.0 ? 7.0 : std::nearbyint(ratio) - ratio);
    all_clamped = all_clamped && std::abs(ratio) > 7.5;
    difference += g * (y(v, s * 1.001) - y(v, s * 0.999)) / (0.002 * s);
  }
  const double factor = 1.0 / std::sqrt(4.0 * 7.0);
  CHECK(scale.grad().data()[0] == quantrain::test::Approx(published * factor).epsilon(1e-5));
  if (all_clamped)  // no code changes with the scale, so finite differences are exact
    CHECK(scale.grad().data()[0] == quantrain::test::Approx(difference * factor).epsilon(1e-5));
}

TEST_CASE("after 20 epochs of Adam no learned scale is stuck", "[quant][learned][long]") {
  const float rate = GENERATE(2e-3f, 1e-2f);
  CAPTURE(rate);
  manual_seed(1);
  Sequential net{Conv2d{1, 16, {.kernel = 3, .padding = 1, .bias = false}},
                 BatchNorm2d{16},
                 ReLU{},
                 Conv2d{16, 32, {.kernel = 3, .stride = 2, .bias = false}},
                 BatchNorm2d{32},
                 ReLU{},
                 Conv2d{32, 64, {.kernel = 3, .bias = false}},
                 BatchNorm2d{64},
                 ReLU{},
                 Flatten{},
                 Linear{64, 8}};
  const Dataset data = bright_rows(512);
  prepare_qat(net, data.batch(0, 32).input, learned_config(4));
  Adam optimizer(net.parameters(), {.learning_rate = rate});
  DataLoader loader(data, {.batch = 32, .shuffle = true, .seed = 1});
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (Batch& batch : loader.epoch(epoch)) {
      optimizer.zero_grad();
      cross_entropy(net(batch.input), batch.labels).backward();
      optimizer.step();
    }
  }
  const Stuck count = stuck(net, {"0", "3", "6", "10"}, 4);
  CHECK(count.scales == 16 + 32 + 64 + 8 + 3);
  CHECK(count.not_positive == 0);
  CHECK(count.saturated == 0);
  net.eval();
  const Tensor images = data.batch(0, 64).input;
  check_parity(net, convert(net, images), images);
}

}  // namespace quantrain::quant
