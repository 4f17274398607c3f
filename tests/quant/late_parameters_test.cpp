#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/sgd.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/tensors.hpp"

// Preparing a network adds parameters. An optimizer that was made earlier does not have them.
namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::mlp;
using test::random_images;

QConfig learned() {
  QConfig config = QConfig::int8();
  config.model.weight.estimator = Estimator::kLearned;
  config.model.activation.estimator = Estimator::kLearned;
  return config;
}

void backward(Module& net) {
  for (Tensor& parameter : net.parameters()) parameter.zero_grad();
  cross_entropy(net(random_images({3, 12}, 2)), std::vector<int32_t>{0, 1, 2}).backward();
}

}  // namespace

TEST_CASE("an optimizer made before prepare_qat names the scales that it lacks",
          "[quant][prepare]") {
  Sequential net = mlp();
  Adam early(net.parameters());
  prepare_qat(net, random_images({1, 12}, 1), learned());
  Adam late(net.parameters());
  backward(net);
  const std::vector<float> before = values(net.parameters()[0]);
  QUANTRAIN_CHECK_ERROR(
      early.step(),
      DataError,
      "[adam] was made before these parameters, which have gradients: "
      "\"0.weight_slot.scale\", \"1.output_slot.scale\", \"2.weight_slot.scale\"; "
      "make the optimizer from net.parameters() after prepare_qat");
  CHECK(values(net.parameters()[0]) == before);
  CHECK_NOTHROW(late.step());
  CHECK(values(net.parameters()[0]) != before);
}

TEST_CASE("an optimizer may lack scales that do not learn; one made after prepare_qat may lack any",
          "[quant][prepare]") {
  Sequential net = mlp();
  const std::vector<Tensor> weights = net.parameters();
  Sgd early(weights);
  SECTION("fixed scales bring no parameters") {
    prepare_qat(net, random_images({1, 12}, 1), QConfig::int8());
    backward(net);
    CHECK_NOTHROW(early.step());
  }
  SECTION("frozen scales have no gradient") {
    prepare_qat(net, random_images({1, 12}, 1), learned());
    calibrate(net, random_images({4, 12}, 3));
    freeze(net);
    backward(net);
    CHECK_NOTHROW(early.step());
  }
  SECTION("an optimizer made after prepare_qat from some of the parameters") {
    prepare_qat(net, random_images({1, 12}, 1), learned());
    Sgd late(weights);
    backward(net);
    CHECK_NOTHROW(late.step());
  }
}

}  // namespace quantrain::quant
