#include <cmath>

#include "framework/autograd/ops.hpp"
#include "quant/prepare/fake_quantize_op.hpp"
#include "tests/tensors.hpp"

// Compares the integer simulation with the classic float simulation.   docs/quantization.md (17)
namespace quantrain::quant {
namespace {

using quantrain::test::random_tensor;
using quantrain::test::values;

/// The tensors and parameters of one layer, for both simulations.
struct Layer {
  Tensor x, weight, bias;
  QParams x_params, weight_params, y_params;

  template <class Product>
  Tensor simulate(bool integers, const Product& product) const {
    FakeQuantizeOptions options{.codes = integers};
    const Tensor xq = fake_quantize(x, x_params, options);
    options.storage = CodeStorage::kS8;
    return product(xq, fake_quantize(weight, weight_params, options), bias);
  }
};

Layer random_layer(const Shape& x, const Shape& weight, int bits, float top, uint64_t seed) {
  const auto levels = static_cast<float>((1 << bits) - 1);
  const auto most = static_cast<float>((1 << (bits - 1)) - 1);
  Layer layer{random_tensor(x, seed),
              random_tensor(weight, seed + 1),
              random_tensor({weight[0]}, seed + 2),
              {{bits, false, false}, -1, {2.0f / levels}, {static_cast<int32_t>(levels / 2)}},
              {{bits, true, true}, 0, {}, {}},
              {{bits, false, false}, -1, {top / levels}, {static_cast<int32_t>(levels / 3)}}};
  for (int64_t o = 0; o < weight[0]; ++o) {
    layer.weight_params.scale.push_back((1.0f + 0.1f * static_cast<float>(o)) / most);
    layer.weight_params.zero_point.push_back(0);
  }
  return layer;
}

/// Checks that the codes of the two simulations differ by at most one, and differ only where the
/// value before rounding lies within the bound (17) of the midpoint of two codes. Each sum has
/// `reduction` products. Returns how many codes differ.
template <class Product>
int64_t check_bound(const Layer& layer, int64_t reduction, const Product& product) {
  const Tensor integer = layer.simulate(true, product);
  const Tensor floating = layer.simulate(false, product);
  REQUIRE(integer.kind() == ValueKind::kWaiting);
  REQUIRE(floating.kind() == ValueKind::kFloat);
  const WaitingResult::Sums sums = TensorAccess::waiting(integer)->sums().value();
  const std::vector<float> a = values(fake_quantize(integer, layer.y_params));
  const std::vector<float> b = values(fake_quantize(floating, layer.y_params, {.codes = false}));

  const auto absolute = [](const Tensor& t) {
    Tensor result = Tensor::empty(t.shape());
    for (int64_t i = 0; i < t.elements(); ++i) result.mutable_data()[i] = std::abs(t.floats()[i]);
    return result;
  };
  const Tensor xf = absolute(fake_quantize(layer.x, layer.x_params, {.codes = false}));
  const Tensor wf = absolute(fake_quantize(
      layer.weight, layer.weight_params, {.storage = CodeStorage::kS8, .codes = false}));
  const Tensor sizes = product(xf, wf, absolute(layer.bias));

  const double scale_y = double{layer.y_params.scale[0]};
  const double unit = 0x1p-24;
  const double roundings = static_cast<double>(reduction + 4);
  const double gamma = roundings * unit / (1.0 - roundings * unit);
  int64_t apart = 0;
  int64_t beyond = 0;
  for (int64_t i = 0; i < integer.elements(); ++i) {
    const double scale = sums.scale[static_cast<size_t>(i) % sums.scale.size()];
    const double exact = static_cast<double>(sums.values[i]) * scale / scale_y;
    // `sizes` holds float32 sums; the factor 1 + gamma covers their rounding error.
    const double size = double{sizes.data()[i]} * (1.0 + gamma) / scale_y;
    const double bound = gamma * size + 0.5 * scale / scale_y + std::abs(exact) * 0x1p-31;
    const double to_middle = std::abs(exact - std::floor(exact) - 0.5);
    const auto at = static_cast<size_t>(i);
    const double difference = std::abs(double{a[at]} - double{b[at]}) / scale_y;
    if (difference > 0.5) {
      ++apart;
      beyond += to_middle > bound || difference > 1.5;
    }
  }
  CHECK(beyond == 0);
  CHECK(apart * 20 <= integer.elements());  // few values lie that close to a midpoint
  return apart;
}

}  // namespace

TEST_CASE("integer and float simulation of a layer differ only near the midpoint of two codes",
          "[quant][simulation]") {
  int64_t apart = 0;
  for (const int bits : {8, 4}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(bits, seed);
      apart += check_bound(
          random_layer({16, 300}, {32, 300}, bits, 40.0f, seed),
          300,
          [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear(x, w, b); });
      apart += check_bound(random_layer({2, 9, 8, 6}, {10, 3, 3, 6}, bits, 20.0f, seed),
                           54,
                           [](const Tensor& x, const Tensor& w, const Tensor& b) {
                             return conv2d(x, w, b, {.padding = 1});
                           });
    }
  }
  CHECK(apart > 0);  // the two simulations do differ
}

}  // namespace quantrain::quant
