#include "layers/normalization.hpp"

#include "framework/core/error.hpp"
#include "framework/data/dataset.hpp"
#include "layers/layers.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::random_tensor;
using test::values;

const Normalization kColours{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};

/// (x - mean) / deviation, in double.
Tensor normalized(const Tensor& x, const Normalization& n) {
  std::vector<float> z = values(x);
  const auto channels = static_cast<size_t>(x.shape().back());
  for (size_t i = 0; i < z.size(); ++i) {
    const size_t c = n.mean.size() == 1 ? 0 : i % channels;
    z[i] = static_cast<float>((static_cast<double>(z[i]) - static_cast<double>(n.mean[c])) /
                              static_cast<double>(n.deviation[c]));
  }
  return Tensor::from(x.shape(), z);
}

/// Checks that the folded network gives for x what it gave for z. The tolerance is relative to the
/// largest output, because the sums of both forms round differently.
void check_fold(Sequential& net, const Tensor& x, const Normalization& n) {
  net.eval();
  const std::vector<float> before = values(net(normalized(x, n)));
  fold_normalization(net, x, n);
  const std::vector<float> after = values(net(x));
  REQUIRE(before.size() == after.size());
  float largest = 0.0f;
  for (const float y : before) largest = std::max(largest, std::abs(y));
  for (size_t i = 0; i < before.size(); ++i)
    REQUIRE(std::abs(before[i] - after[i]) < 1e-6f * std::max(1.0f, largest));
}

/// Random statistics and factors of a batch norm, as after training.
template <class Norm>
Norm trained(Norm norm, uint64_t seed) {
  const Shape shape = norm.gamma().shape();
  test::set(norm.running_mean(), values(random_tensor(shape, seed)));
  test::set(norm.running_var(), values(random_tensor(shape, seed + 1, 0.5f, 2.0f)));
  test::set(norm.gamma(), values(random_tensor(shape, seed + 2, 0.5f, 2.0f)));
  return norm;
}

}  // namespace

TEST_CASE("a folded network takes x and gives what it gave for normalized x",
          "[layers][normalization]") {
  manual_seed(3);
  const Tensor images = random_tensor({2, 6, 5, 3}, 1, 0.0f, 1.0f);
  Sequential biased{Conv2d{3, 4, {.kernel = 3, .stride = 2}}, ReLU{}, Conv2d{4, 2, {.kernel = 1}}};
  check_fold(biased, images, kColours);
  Sequential with_norm{
      Conv2d{3, 4, {.kernel = 3, .bias = false}}, trained(BatchNorm2d{4}, 7), ReLU{}};
  check_fold(with_norm, images, kColours);
  Sequential depthwise{Conv2d{3, 6, {.kernel = 3, .groups = 3}}};
  check_fold(depthwise, images, kColours);
  Sequential one_number{Conv2d{3, 4, {.kernel = 3}}};
  check_fold(one_number, images, {{0.1307f}, {0.3081f}});
  Sequential flat{Flatten{}, Linear{90, 4}, ReLU{}};
  check_fold(flat, images, kColours);
  Sequential rows{Linear{3, 4, {.bias = false}}, trained(BatchNorm1d{4}, 5)};
  check_fold(rows, random_tensor({4, 3}, 2, 0.0f, 1.0f), kColours);
  Sequential signals{Conv1d{3, 4, {.kernel = 5}}};
  check_fold(signals, random_tensor({2, 9, 3}, 2, 0.0f, 1.0f), kColours);
}

TEST_CASE("with a channel of ones, the first convolution may pad", "[layers][normalization]") {
  const Tensor images = random_tensor({2, 6, 5, 3}, 1, 0.0f, 1.0f);
  const std::vector<float> with_ones = values(OnesChannel{}(images));
  CHECK(OnesChannel{}(images).shape() == Shape{2, 6, 5, 4});
  for (size_t i = 0; i < with_ones.size(); ++i)
    REQUIRE(with_ones[i] == (i % 4 == 3 ? 1.0f : values(images)[i / 4 * 3 + i % 4]));
  CHECK(OnesChannel{}(Tensor::zeros({2, 7, 1})).shape() == Shape{2, 7, 2});
  QUANTRAIN_CHECK_ERROR(
      OnesChannel{}(Tensor::zeros({3})), ShapeError, "[OnesChannel] x has no channels: x [3]");

  manual_seed(4);
  Sequential net{OnesChannel{},
                 Conv2d{4, 5, {.kernel = 3, .padding = 1, .bias = false}},
                 trained(BatchNorm2d{5}, 3)};
  auto& conv = dynamic_cast<Conv2d&>(net.find("1"));
  // The trained network knows nothing of the ones.
  std::vector<float> weight = values(conv.weight());
  for (size_t i = 3; i < weight.size(); i += 4) weight[i] = 0.0f;
  test::set(conv.weight(), weight);
  // Its padding is 0 in z, so the ones may be whatever they are: z has a channel of 1 there, too.
  net.eval();
  const Tensor z = normalized(images, kColours);
  Sequential plain{Conv2d{3, 5, {.kernel = 3, .padding = 1, .bias = false}}};
  std::vector<float> three;
  for (size_t i = 0; i < weight.size(); ++i)
    if (i % 4 != 3) three.push_back(weight[i]);
  test::set(dynamic_cast<Conv2d&>(plain.find("0")).weight(), three);
  const std::vector<float> expected = values(net.find("2")(plain(z)));
  fold_normalization(net, images, kColours);
  const std::vector<float> folded = values(net(images));
  for (size_t i = 0; i < expected.size(); ++i) REQUIRE(std::abs(folded[i] - expected[i]) < 1e-5f);
  const std::vector<float> once = values(conv.weight());
  QUANTRAIN_CHECK_ERROR(fold_normalization(net, images, kColours), GraphError, "fold only once");
  CHECK(values(conv.weight()) == once);
}

TEST_CASE("a network is folded once, and again after its trained weights are loaded",
          "[layers][normalization]") {
  const Tensor x = random_tensor({2, 6, 5, 3}, 1, 0.0f, 1.0f);
  for (const bool norm : {false, true}) {
    Sequential net = norm ? Sequential{Conv2d{3, 4, {.bias = false}}, trained(BatchNorm2d{4}, 7)}
                          : Sequential{Conv2d{3, 4}, ReLU{}};
    const Tensor weight = dynamic_cast<Conv2d&>(net.find("0")).weight();
    const std::vector<float> loaded = values(weight);
    fold_normalization(net, x, kColours);
    std::vector<std::vector<float>> once;
    for (const NamedState& entry : net.named_buffers())
      if (!entry.holds_integers()) once.push_back(values(entry.tensor));
    const std::vector<float> folded = values(weight);
    QUANTRAIN_CHECK_ERROR(fold_normalization(net, x, kColours),
                          GraphError,
                          "[0] was folded already, and its weight is still what that left");
    CHECK(values(weight) == folded);
    size_t i = 0;
    for (const NamedState& entry : net.named_buffers())
      if (!entry.holds_integers()) CHECK(values(entry.tensor) == once[i++]);
    test::set(weight, loaded);
    CHECK_NOTHROW(fold_normalization(net, x, kColours));
    CHECK(values(weight) == folded);
  }
}

TEST_CASE("fold_normalization refuses what it cannot fold, and changes nothing",
          "[layers][normalization]") {
  const Tensor x = random_tensor({1, 6, 6, 3}, 1, 0.0f, 1.0f);
  const auto refuse = [&](Sequential net, const Normalization& n, const auto& check) {
    std::vector<std::vector<float>> before;
    for (const Tensor& p : net.parameters()) before.push_back(values(p));
    check(net, n);
    size_t i = 0;
    for (const Tensor& p : net.parameters()) CHECK(values(p) == before[i++]);
  };
  refuse(Sequential{Conv2d{3, 2, {.padding = 1}}}, kColours, [&](auto& net, auto& n) {
    QUANTRAIN_CHECK_ERROR(fold_normalization(net, x, n),
                          GraphError,
                          "[0] pads with zeros, which stand for the mean of normalized inputs");
  });
  refuse(Sequential{Conv2d{3, 2, {.bias = false}}, ReLU{}}, kColours, [&](auto& net, auto& n) {
    QUANTRAIN_CHECK_ERROR(fold_normalization(net, x, n),
                          GraphError,
                          "[0] has neither a bias nor a batch norm after it: give it a bias of 0");
  });
  refuse(Sequential{ReLU{}, Conv2d{3, 2}}, kColours, [&](auto& net, auto& n) {
    QUANTRAIN_CHECK_ERROR(
        fold_normalization(net, x, n), GraphError, "[0] the first operation is relu: ");
  });
  refuse(Sequential{Conv2d{3, 2}}, {{0.5f, 0.5f}, {1.0f}}, [&](auto& net, auto& n) {
    QUANTRAIN_CHECK_ERROR(fold_normalization(net, x, n),
                          DataError,
                          "[fold_normalization] mean has 2 numbers: expected one, or one for each "
                          "of the 3 channels");
  });
  refuse(Sequential{Conv2d{3, 2}}, {{0.5f}, {0.0f}}, [&](auto& net, auto& n) {
    QUANTRAIN_CHECK_ERROR(fold_normalization(net, x, n), DataError, "a deviation not positive: 0");
  });
  const Dataset bytes({1, 6, 6, 3}, std::vector<uint8_t>(108, 7), {0}, 1);
  refuse(Sequential{Conv2d{3, 2}}, {{123.7f}, {58.0f}}, [&](auto& net, auto& n) {
    QUANTRAIN_CHECK_ERROR(fold_normalization(net, bytes.batch(0, 1).input, n),
                          DataError,
                          "a mean of 123.7 lies outside of the example's range [0, 1]");
  });
  const Conv2d first{3, 3, {.kernel = 1}};
  refuse(Sequential{Conv2d{first.weight(), first.bias(), {}},
                    Conv2d{first.weight(), first.bias(), {}}},
         kColours,
         [&](auto& net, auto& n) {
           QUANTRAIN_CHECK_ERROR(
               fold_normalization(net, x, n), GraphError, "[0] other layers use this weight, too");
         });
}

}  // namespace quantrain
