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
