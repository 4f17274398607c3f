#include <limits>

#include "quant/arithmetic.hpp"
#include "quant/observers/spec.hpp"
#include "tests/vectors.hpp"

namespace quantrain::quant {
namespace {

using test::Json;
using test::to_tensor;

// PyTorch takes max - min in float32, which rounds the ends of a moving average once more.
constexpr test::Tolerance kScale{0.0, std::numeric_limits<float>::epsilon()};

QType type_of(const Json& json) {
  const auto qmin = json.at("qmin").get<int32_t>();
  const auto qmax = json.at("qmax").get<int32_t>();
  int bits = 1;
  while ((qmin < 0 ? 1 << (bits - 1) : 1 << bits) <= qmax) ++bits;
  return {bits, qmin < 0, qmin == -qmax};
}

size_t channel_of(const Shape& shape, int axis, int64_t i) {
  if (axis < 0) return 0;
  int64_t inner = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  return static_cast<size_t>(i / inner % shape[axis]);
}

}  // namespace

TEST_CASE("ranges after each batch, and their parameters, are PyTorch's",
          "[quant][observer][vectors]") {
  for (const Json& json : test::load_vectors("observers")) {
    CAPTURE(json.at("observer").get<std::string>(), json.at("axis").get<int>());
    ObserverSpec spec{.kind = observer_kind(json.at("observer").get<std::string>())};
    if (json.contains("constant")) spec.averaging_constant = json.at("constant").get<float>();
    auto observer = make_observer(spec, json.at("axis").get<int>());
    for (size_t batch = 0; batch < json.at("batches").size(); ++batch) {
      observer->observe(to_tensor(json.at("batches")[batch]));
      std::vector<float> min;
      std::vector<float> max;
      for (const Range& range : observer->ranges()) {
        min.push_back(range.min);
        max.push_back(range.max);
      }
      CHECK(min == json.at("min")[batch].get<std::vector<float>>());
      CHECK(max == json.at("max")[batch].get<std::vector<float>>());
    }
    const QScheme scheme =
        json.at("scheme") == "symmetric" ? QScheme::kSymmetric : QScheme::kAffine;
    const QParams params = observer->params(type_of(json), scheme);
    CHECK(params.zero_point == json.at("zero_point").get<std::vector<int32_t>>());
    const auto scales = json.at("scale").get<std::vector<float>>();
    REQUIRE(params.scale.size() == scales.size());
    for (size_t c = 0; c < scales.size(); ++c) {
      CHECK(params.scale[c] == test::Approx(scales[c]).epsilon(kScale.epsilon));
    }
  }
}

TEST_CASE("codes and their gradient's mask are PyTorch's", "[quant][arithmetic][vectors]") {
  for (const Json& json : test::load_vectors("fake_quantize")) {
    const QType type = type_of(json);
    REQUIRE(type.qmin() == json.at("qmin").get<int32_t>());
    REQUIRE(type.qmax() == json.at("qmax").get<int32_t>());
    const Tensor x = to_tensor(json.at("x"));
    const auto scale = json.at("scale").get<std::vector<float>>();
    const auto zero = json.at("zero_point").get<std::vector<int32_t>>();
    const auto y = json.at("y").at("values").get<std::vector<float>>();
    const auto mask = json.at("mask").get<std::vector<int>>();
    for (int64_t i = 0; i < x.elements(); ++i) {
      const float value = x.data()[i];
      const size_t c = channel_of(x.shape(), json.at("axis").get<int>(), i);
      CAPTURE(value, scale[c], zero[c]);
      const int32_t code = quantize(value, scale[c], zero[c], type.qmin(), type.qmax());
      const bool passes = gradient_passes(value, scale[c], zero[c], type.qmin(), type.qmax());
      CHECK(dequantize(code, scale[c], zero[c]) == y[static_cast<size_t>(i)]);
      CHECK(passes == (mask[static_cast<size_t>(i)] != 0));
    }
  }
}

}  // namespace quantrain::quant
