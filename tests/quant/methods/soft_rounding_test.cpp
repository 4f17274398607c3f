// AdaRound's parts against PyTorch: tests/reference/make_methods.py.
#include <cmath>

#include "framework/autograd/grad_check.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "quant/methods/soft_rounding.hpp"
#include "tests/tensors.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using quantrain::test::check_close;
using quantrain::test::Json;
using quantrain::test::to_tensor;

// One float32 computation each: the sigmoid and a few products.
constexpr quantrain::test::Tolerance kFew{2e-6, 2e-6};
// Gradients through |2 h - 1|^19, where h's error of 1e-7 grows by the exponent.
constexpr quantrain::test::Tolerance kPower{1e-5, 5e-5};

std::vector<Json> cases() {
  return quantrain::test::load_vectors("rounding", "methods.json").get<std::vector<Json>>();
}

std::shared_ptr<const SoftWeights> soft_weights(const Json& json) {
  auto weights = std::make_shared<SoftWeights>();
  const auto scale = json.at("scale").get<std::vector<float>>();
  weights->params = {
      {json.at("bits").get<int>(), true, true}, 0, scale, std::vector<int32_t>(scale.size(), 0)};
  const Tensor w = to_tensor(json.at("weight"));
  const Floats values = w.floats();
  for (int64_t i = 0; i < w.elements(); ++i) {
    const auto row = static_cast<size_t>(i / (w.elements() / w.dim(0)));
    weights->floor.push_back(std::floor(values[i] / scale[row]));
  }
  return weights;
}

}  // namespace

TEST_CASE("the rectified sigmoid, soft weights and the regularizer equal PyTorch's",
          "[quant][methods][vectors]") {
  for (const Json& json : cases()) {
    CAPTURE(json.at("beta").get<float>());
    Tensor v = to_tensor(json.at("v")).set_requires_grad(true);
    const std::vector<float> h = rectified_sigmoid({v.data(), static_cast<size_t>(v.elements())});
    check_close(Tensor::from(v.shape(), h), json.at("h"), kFew);
    check_close(soft_quantize(v, soft_weights(json)), json.at("soft"), kFew);
    Tensor regularizer = rounding_regularizer(v, json.at("beta").get<float>());
    CHECK(regularizer.item() == Approx(json.at("regularizer").get<float>()).epsilon(1e-5));
    regularizer.backward();
    check_close(v.grad(), json.at("grad_regularizer"), kPower);
  }
}

TEST_CASE("AdaRound's loss of a layer and its gradient equal PyTorch's",
          "[quant][methods][vectors]") {
  for (const Json& json : cases()) {
    CAPTURE(json.at("beta").get<float>());
    Tensor v = to_tensor(json.at("v")).set_requires_grad(true);
    const Tensor y = relu(linear(
        to_tensor(json.at("x")), soft_quantize(v, soft_weights(json)), to_tensor(json.at("bias"))));
    Tensor loss = quantrain::add(reconstruction_loss(y, to_tensor(json.at("target"))),
                                 mul(rounding_regularizer(v, json.at("beta").get<float>()),
                                     Tensor::full({}, json.at("lambda").get<float>())));
    CHECK(loss.item() == Approx(json.at("loss").get<float>()).epsilon(1e-5));
    loss.backward();
    check_close(v.grad(), json.at("grad_loss"), kPower);
  }
}

TEST_CASE("beta stays during the warm-up and then falls linearly", "[quant][methods][vectors]") {
  for (const Json& json : quantrain::test::load_vectors("annealing", "methods.json")) {
    for (size_t i = 0; i < json.at("at").size(); ++i) {
      CHECK(annealed_beta(json.at("at")[i].get<int64_t>(),
                          json.at("steps").get<int64_t>(),
                          json.at("warm_up").get<int64_t>(),
                          json.at("first").get<float>(),
                          json.at("last").get<float>()) ==
            Approx(json.at("beta")[i].get<float>()).epsilon(1e-6));
    }
  }
  CHECK(annealed_beta(3, 4, 4, 20.0f, 2.0f) == 20.0f);  // nothing but warm-up
}

TEST_CASE("gradients of soft rounding match finite differences", "[quant][methods][gradient]") {
  // Away from 0, where |2 h - 1| has a kink, and from +-2.4, where h is clipped.
  Tensor v = Tensor::from({2, 3}, std::vector<float>{-1.5f, -0.75f, 0.5f, 1.25f, -2.0f, 1.75f})
                 .set_requires_grad(true);
  const auto weights = std::make_shared<const SoftWeights>(
      SoftWeights{{-2.0f, 1.0f, 0.0f, -1.0f, 2.0f, -3.0f}, {{3, true, true}, -1, {0.5f}, {0}}});
  CHECK(grad_check([&] { return soft_quantize(v, weights); }, {v}).ok);
  CHECK(grad_check([&] { return rounding_regularizer(v, 3.0f); }, {v}).ok);
}

TEST_CASE("rounding logits invert the rectified sigmoid", "[quant][methods]") {
  const std::vector<float> shares{0.0f, 0.001f, 0.25f, 0.5f, 0.7f, 0.999f, 1.0f};
  const std::vector<float> again = rectified_sigmoid(rounding_logits(shares));
  for (size_t i = 0; i < shares.size(); ++i) CHECK(again[i] == Approx(shares[i]).margin(1e-6));
  CHECK(std::abs(rounding_logits(std::vector<float>{0.5f})[0]) < 1e-6f);
}

TEST_CASE("a regularizer's exponent out of range is refused", "[quant][methods]") {
  const Tensor v = Tensor::zeros({2});
  CHECK_THROWS_AS(rounding_regularizer(v, 0.5f), QuantError);
  CHECK_THROWS_AS(rounding_regularizer(v, 65.0f), QuantError);
  CHECK(rounding_regularizer(v, 1.0f).item() == 2.0f);  // h is 1/2: nothing is decided
}

}  // namespace quantrain::quant
