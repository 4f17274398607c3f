#include <sstream>

#include "framework/core/error.hpp"
#include "layers/summary.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {
namespace {

using test::conv_net;
using test::random_images;

}  // namespace

TEST_CASE("a plan says what becomes of each layer and changes nothing", "[quant][plan]") {
  Sequential net = conv_net();
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  QUANTRAIN_CHECK_ERROR(plan(net, example), GraphError, "not prepared");
  prepare_qat(net, example, QConfig::bits(4, 6));
  const Plan dry = plan(net, example);
  CHECK(dry.convertible());
  REQUIRE(dry.rows.size() == 6);
  CHECK(dry.rows[0].name == "0");
  CHECK(dry.rows[0].kernel == "conv2d_u8s8_u8");
  CHECK(dry.rows[0].weight_bits == 4);
  CHECK(dry.rows[0].output_bits == 6);
  CHECK(dry.rows[0].accumulator_bound > 0);
  CHECK(dry.rows[0].folded == "1, 2");
  CHECK(dry.rows[5].output_bits == 32);
  for (const FakeQuantize* activation : Plugged(net).activations)
    CHECK_FALSE(activation->is_initialized());
  std::ostringstream text;
  text << dry;
  CHECK(text.str().find("conv2d_u8s8_u8") != std::string::npos);
  QUANTRAIN_CHECK_ERROR(convert(net, example), QuantError, "was not calibrated");
}

TEST_CASE("a plan names the output channels that get few codes", "[quant][plan]") {
  const float ratio = GENERATE(1000.0f, 10.0f);
  const bool image = GENERATE(false, true);
  manual_seed(3);
  Sequential net =
      image ? Sequential{Conv2d{4, 3, {.kernel = 1}}, ReLU{}, Flatten{}} : Sequential{Linear{4, 3}};
  // |weights| of channel 0 and 2: 100; of channel 1: 100 / ratio. Biases of 5.
  for (NamedState& entry : net.named_parameters()) {
    float* const w = entry.tensor.mutable_data();
    const bool weight = entry.name == "0.weight";
    for (int64_t i = 0; i < entry.tensor.elements(); ++i) {
      const float size = i / 4 == 1 ? 100.0f / ratio : 100.0f;
      w[i] = weight ? (i % 2 == 0 ? size : -size) : 5.0f;
    }
  }
  const std::vector<float> values{0.5f, 0.25f, 1.0f, 0.0f, 0.75f, 0.5f, 0.125f, 1.0f};
  const Tensor rows = Tensor::from({2, 4}, values);
  const Tensor example = image ? Tensor::from({2, 1, 1, 4}, values) : rows;
  QConfig config = QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  config.output_bits = 8;
  prepare_ptq(net, example, config);
  const auto lines = [&] {
    std::ostringstream text;
    text << plan(net, example);
    return text.str();
  };
  const Plan dry = plan(net, example);
  CHECK(dry.rows[0].name == "0");
  const std::vector<ChannelCodes>& few = dry.rows[0].few_codes;
  INFO(lines());
  REQUIRE(few.size() == (ratio > 100.0f ? 1 : 0));  // 25 codes are enough
  if (few.empty()) return;
  CHECK(few[0].channel == 1);
  CHECK(few[0].codes == quantrain::test::Approx(0.256).epsilon(0.02));
  CHECK(few[0].samples == 0);
  CHECK(lines().find("output channel 1 gets about 0.26 of the 256 codes") != std::string::npos);

  // With 8 samples, the codes are counted: large weights that cancel out reach nowhere.
  std::vector<float> many;
  for (int i = 0; i < 8; ++i) {
    const float x = static_cast<float>(i) / 8.0f;
    many.insert(many.end(), {x, x, 0.25f, 0.25f});
  }
  Sequential cancels{Linear{4, 2}};
  float* const w = cancels.named_parameters()[0].tensor.mutable_data();
  const float weights[] = {100.0f, 100.0f, 0.0f, 0.0f, 100.0f, -99.0f, 0.0f, 0.0f};
  std::copy(weights, weights + 8, w);
  prepare_ptq(cancels, rows, config);
  const Tensor eight = Tensor::from({8, 4}, many);
  const std::vector<ChannelCodes> counted = plan(cancels, eight).rows[0].few_codes;
  REQUIRE(counted.size() == 1);
  CHECK(counted[0].channel == 1);
  CHECK(counted[0].samples == 8);
  CHECK(counted[0].codes <= 3.0);
  CHECK(plan(cancels, rows).rows[0].few_codes.empty());  // two samples

  // Each channel of integers of 32 bits has a scale of its own.
  Sequential wide{Linear{4, 3}};
  config.output_bits = 32;
  prepare_ptq(wide, rows, config);
  for (const PlanRow& row : plan(wide, rows).rows) CHECK(row.few_codes.empty());
}

TEST_CASE("a summary calibrates nothing", "[quant][plan]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Estimator estimator = GENERATE(Estimator::kClamped, Estimator::kLearned);
  QConfig config = QConfig::int8();
  config.model.activation.estimator = estimator;
  const auto check = [&](void (*prepare)(Module&, const Tensor&, const QConfig&)) {
    Sequential net = conv_net();
    prepare(net, example, config);
    const std::vector<FakeQuantize*> activations = Plugged(net).activations;
    summary(net, Tensor::zeros({1, 8, 8, 1}));
    for (const FakeQuantize* activation : activations) CHECK_FALSE(activation->is_initialized());
    calibrate(net, example);
    const QParams seen = activations[0]->params();
    summary(net, Tensor::full({1, 8, 8, 1}, 9.0f));
    CHECK(activations[0]->params() == seen);
  };
  check(prepare_qat);
  check(prepare_ptq);
}

}  // namespace quantrain::quant
