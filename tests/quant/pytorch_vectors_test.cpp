#include <limits>

#include "framework/autograd/ops.hpp"
#include "quant/arithmetic.hpp"
#include "quant/observers/spec.hpp"
#include "quant/prepare/fake_quantize_op.hpp"
#include "tests/tensors.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Json;
using quantrain::test::to_tensor;

// PyTorch computes max - min in float32, which rounds if max and min are moving averages. quantrain
// computes the difference in double.
constexpr quantrain::test::Tolerance kScale{0.0, std::numeric_limits<float>::epsilon()};
constexpr quantrain::test::Tolerance kEqual{};
// PyTorch sums the products (at most a hundred) in float32, and quantrain sums them in double.
constexpr quantrain::test::Tolerance kSums{0.0, 1e-5};

QType type_of(const Json& json) {
  const auto qmin = json.at("qmin").get<int32_t>();
  const auto qmax = json.at("qmax").get<int32_t>();
  int bits = 1;
  while ((qmin < 0 ? 1 << (bits - 1) : 1 << bits) <= qmax) ++bits;
  return {bits, qmin < 0, qmin == -qmax};
}

QParams params_of(const Json& json) {
  const auto scale = json.at("scale").get<std::vector<float>>();
  std::vector<int32_t> zero(scale.size(), 0);
  if (json.contains("zero_point")) zero = json.at("zero_point").get<std::vector<int32_t>>();
  return {type_of(json), json.at("axis").get<int>(), scale, zero};
}

}  // namespace

TEST_CASE("an observer's ranges after each batch and its final parameters equal PyTorch's",
          "[quant][observer][vectors]") {
  for (const Json& json : quantrain::test::load_vectors("observers")) {
    CAPTURE(json.at("observer").get<std::string>(), json.at("axis").get<int>());
    ObserverSpec spec = observer_spec(json.at("observer").get<std::string>());
    if (json.contains("constant"))
      std::get<MovingAverageOptions>(spec).constant = json.at("constant").get<float>();
    const auto axis = json.at("axis").get<int>();
    const auto channels = static_cast<int64_t>(json.at("scale").size());
    const QScheme scheme =
        json.at("scheme") == "symmetric" ? QScheme::kSymmetric : QScheme::kAffine;
    auto observer = make_observer(spec, {axis, channels});
    for (size_t batch = 0; batch < json.at("batches").size(); ++batch) {
      observer->observe(to_tensor(json.at("batches")[batch]));
      std::vector<float> min;
      std::vector<float> max;
      for (const Range& range : observer->ranges(type_of(json), scheme)) {
        min.push_back(range.min);
        max.push_back(range.max);
      }
      CHECK(min == json.at("min")[batch].get<std::vector<float>>());
      CHECK(max == json.at("max")[batch].get<std::vector<float>>());
    }
    const QParams params = observer->params(type_of(json), scheme);
    CHECK(params.zero_point == json.at("zero_point").get<std::vector<int32_t>>());
    const auto scales = json.at("scale").get<std::vector<float>>();
    REQUIRE(params.scale.size() == scales.size());
    for (size_t c = 0; c < scales.size(); ++c) {
      CHECK(params.scale[c] == quantrain::test::Approx(scales[c]).epsilon(kScale.epsilon));
    }
  }
}

TEST_CASE("FakeQuantize's values and gradients equal PyTorch's",
          "[quant][fake_quantize][vectors]") {
  for (const Json& json : quantrain::test::load_vectors("fake_quantize")) {
    const QParams params = params_of(json);
    REQUIRE(params.type.qmin() == json.at("qmin").get<int32_t>());
    REQUIRE(params.type.qmax() == json.at("qmax").get<int32_t>());
    for (const bool codes : {true, false}) {
      const Tensor x = to_tensor(json.at("x")).set_requires_grad(true);
      const CodeStorage storage = params.type.is_signed ? CodeStorage::kS8 : CodeStorage::kU8;
      const Tensor y = fake_quantize(x, params, {.storage = storage, .codes = codes});
      sum(y).backward();
      quantrain::test::check_close(y, json.at("y"), kEqual);
      const auto mask = json.at("mask").get<std::vector<float>>();
      CHECK(quantrain::test::values(x.grad()) == mask);
    }
  }
}

TEST_CASE("a learned scale's gradients equal PyTorch's", "[quant][fake_quantize][vectors]") {
  for (const Json& json : quantrain::test::load_vectors("lsq")) {
    const QParams params = params_of(json);
    const Tensor x = to_tensor(json.at("x")).set_requires_grad(true);
    const Tensor grad_y = to_tensor(json.at("grad_y"));
    Tensor scale = Tensor::from({static_cast<int64_t>(params.scale.size())}, params.scale);
    scale.set_requires_grad(true);
    const CodeStorage storage = params.type.is_signed ? CodeStorage::kS8 : CodeStorage::kU8;
    const Tensor y = fake_quantize_learned(x, scale, params, {.storage = storage});
    sum(mul(y, grad_y)).backward();
    CHECK(quantrain::test::values(y) == quantrain::test::values(to_tensor(json.at("y"))));
    CHECK(quantrain::test::values(x.grad()) ==
          quantrain::test::values(to_tensor(json.at("grad_x"))));
    const auto grad_scale = json.at("grad_scale").get<std::vector<float>>();
    for (size_t c = 0; c < grad_scale.size(); ++c) {
      CHECK(scale.grad().data()[c] ==
            quantrain::test::Approx(grad_scale[c]).epsilon(kSums.epsilon));
    }
  }
}

}  // namespace quantrain::quant
