#include "layers/layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/autograd/grad_check.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

using test::random_tensor;
using test::set;
using test::values;

/// Distinct values in random order, 0.1 apart and at least 0.05 from 0, so that no
/// finite-difference step meets the kink of a ReLU or a tie of a max pool.
Tensor spread_tensor(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Tensor x = Tensor::empty(shape);
  const int64_t n = x.elements();
  float* const data = x.mutable_data();
  for (int64_t i = 0; i < n; ++i) data[i] = 0.1f * static_cast<float>(i - n / 2) + 0.05f;
  for (int64_t i = n - 1; i > 0; --i) std::swap(data[i], data[random.below(i + 1)]);
  return x;
}

/// Checks the gradients of the input and of every parameter.
void check_gradients(Module& layer, Tensor x) {
  x.set_requires_grad(true);
  std::vector<Tensor> inputs = layer.parameters();
  inputs.push_back(x);
  const GradCheckResult result = grad_check([&] { return layer(x); }, inputs);
  INFO(layer.type() << ": " << result.worst);
  CHECK(result.ok);
}

}  // namespace

TEST_CASE("a layer made from another layer's tensors shares them", "[layers]") {
  Linear fc{3, 3};
  Linear twin{fc.weight(), fc.bias()};
  const Tensor x = Tensor::from({1, 3}, std::vector<float>{1, 2, 3});
  CHECK(values(twin(x)) == values(fc(x)));
  sum(quantrain::add(twin(x), fc(x))).backward();
  CHECK(values(fc.weight().grad()) == std::vector<float>{2, 4, 6, 2, 4, 6, 2, 4, 6});
  CHECK(Linear{fc.weight()}.parameters().size() == 1);

  const Conv2d conv{4, 6, {.kernel = {3, 1}, .groups = 2}};
  Conv2d same{conv.weight(), conv.bias(), {.stride = 2, .groups = 2}};
  CHECK(same.options().kernel == Size2d{3, 1});
  CHECK(same(Tensor::zeros({1, 5, 5, 4})).shape() == Shape{1, 2, 3, 6});
  CHECK_FALSE(Conv2d(conv.weight(), Tensor(), {.groups = 2}).options().bias);

  const Conv1d signal{4, 6, {.kernel = 5, .groups = 2}};
  CHECK(signal.weight().shape() == Shape{6, 5, 2});
  Conv1d of_signals{signal.weight(), signal.bias(), {.stride = 2, .groups = 2, .dilation = 2}};
  CHECK(of_signals.options().kernel == 5);
  CHECK(of_signals(Tensor::zeros({1, 12, 4})).shape() == Shape{1, 2, 6});
  QUANTRAIN_CHECK_ERROR(
      Conv1d(Tensor(), Tensor(), {}), ShapeError, "[Conv1d] the weight is undefined");
  QUANTRAIN_CHECK_ERROR(Conv1d(conv.weight(), Tensor(), {}),
                        ShapeError,
                        "a weight is [O, K, C / groups], got [6, 3, 1, 2]");
  QUANTRAIN_CHECK_ERROR(
      Conv1d(signal.weight(), fc.bias(), {}), ShapeError, "bias [3] does not fit");
  QUANTRAIN_CHECK_ERROR(
      Conv1d(signal.weight(), Tensor(), {.groups = 4}), ShapeError, "do not divide the channels");
  QUANTRAIN_CHECK_ERROR(Conv1d(signal.weight(), Tensor(), {.groups = 7}),
                        ShapeError,
                        "groups 7 does not fit weight [6, 5, 2]");

  QUANTRAIN_CHECK_ERROR(Linear{Tensor()}, ShapeError, "undefined");
  QUANTRAIN_CHECK_ERROR(Linear{conv.weight()}, ShapeError, "[out, in], got [6, 3, 1, 2]");
  QUANTRAIN_CHECK_ERROR(Linear(fc.weight(), conv.bias()), ShapeError, "bias [6] does not fit");
  QUANTRAIN_CHECK_ERROR(Conv2d(Tensor(), Tensor(), {}), ShapeError, "undefined");
  QUANTRAIN_CHECK_ERROR(
      Conv2d(fc.weight(), Tensor(), {}), ShapeError, "KW, C / groups], got [3, 3]");
  QUANTRAIN_CHECK_ERROR(Conv2d(conv.weight(), fc.bias(), {}), ShapeError, "bias [3] does not fit");
  QUANTRAIN_CHECK_ERROR(
      Conv2d(conv.weight(), Tensor(), {.groups = 4}), ShapeError, "do not divide the channels");
}

TEST_CASE("linear multiplies by the transposed weight and adds the bias", "[layers][linear]") {
  Linear fc{3, 2};
  set(fc.weight(), {1, 2, 3, 4, 5, 6});
  set(fc.bias(), {10, 20});
  CHECK(values(fc(Tensor::from({1, 3}, values(Tensor::full({3}, 1.0f))))) ==
        std::vector<float>{16, 35});
  CHECK(fc(Tensor::zeros({2, 4, 3})).shape() == Shape{2, 4, 2});
  CHECK(fc(Tensor::zeros({0, 3})).shape() == Shape{0, 2});
  CHECK_FALSE(Linear(3, 2, {.bias = false}).bias().defined());
}

TEST_CASE("conv2d slides its kernel over the padded image", "[layers][conv2d]") {
  Conv2d conv{1, 1, {.kernel = 3, .padding = 1}};
  set(conv.weight(), std::vector<float>(9, 1.0f));
  set(conv.bias(), {0.5f});
  CHECK(values(conv(Tensor::full({1, 2, 2, 1}, 1.0f))) == std::vector<float>(4, 4.5f));
  CHECK(Conv2d{4, 6, {.kernel = {3, 1}, .stride = {2, 1}, .padding = {1, 0}, .groups = 2}}(
            Tensor::zeros({2, 5, 7, 4}))
            .shape() == Shape{2, 3, 7, 6});
  CHECK(Conv2d{
            2, 3, {.kernel = 3, .padding = {2, 0}, .dilation = {2, 3}}}(Tensor::zeros({2, 5, 8, 2}))
            .shape() == Shape{2, 5, 2, 3});
}

TEST_CASE("batch norm uses the batch while training and running statistics in evaluation",
          "[layers][batch_norm]") {
  BatchNorm2d norm{1, {.epsilon = 1e-5f, .momentum = 0.5f}};
  const Tensor x = Tensor::from({2, 1, 1, 1}, std::vector<float>{1, 3});  // mean 2, variance 1
  const std::vector<float> y = values(norm(x));
  CHECK(y[0] == test::Approx(-1.0).epsilon(1e-4));
  CHECK(y[1] == test::Approx(1.0).epsilon(1e-4));
  CHECK(norm.running_mean().item() == 1.0f);
  CHECK(norm.running_var().item() == 0.5f * 1.0f + 0.5f * 2.0f);  // the unbiased variance is 2
  BatchNorm1d of_rows{1, {.epsilon = 1e-5f, .momentum = 0.5f}};
  CHECK(values(of_rows(Tensor::from({2, 1}, values(x)))) == y);
  CHECK(of_rows.running_var().item() == norm.running_var().item());
  BatchNorm1d of_signals{1, {.epsilon = 1e-5f, .momentum = 0.5f}};
  CHECK(values(of_signals(Tensor::from({1, 2, 1}, values(x)))) == y);
  CHECK(of_signals.running_var().item() == norm.running_var().item());
  norm.eval();
  CHECK(norm(x).data()[1] == test::Approx((3.0 - 1.0) / std::sqrt(1.5 + 1e-5)));
  CHECK(norm.running_mean().item() == 1.0f);
  CHECK(norm.named_buffers().size() == 2);
}

TEST_CASE("relu and relu6 clamp", "[layers][activation]") {
  const Tensor x = Tensor::from({4}, std::vector<float>{-1, 0, 5, 7});
  CHECK(values(ReLU{}(x)) == std::vector<float>{0, 0, 5, 7});
  CHECK(values(ReLU6{}(x)) == std::vector<float>{0, 0, 5, 6});
}

TEST_CASE("each activation layer computes its function", "[layers][activation]") {
  const Tensor x = Tensor::from({5}, std::vector<float>{-9, -1, 0, 2, 7});
  CHECK(values(Sigmoid{}(x)) == values(sigmoid(x)));
  CHECK(values(Tanh{}(x)) == values(quantrain::tanh(x)));
  CHECK(values(HardSigmoid{}(x)) == values(hard_sigmoid(x)));
  CHECK(values(HardSwish{}(x)) == values(hard_swish(x)));
  CHECK(values(SiLU{}(x)) == values(silu(x)));
  CHECK(values(HardSigmoid{0.2f, 0.5f}(x)) == values(hard_sigmoid(x, 0.2f, 0.5f)));
  CHECK(values(GELU{}(x)) == values(gelu(x)));
  CHECK(values(GELUTanh{}(x)) == values(gelu_tanh(x)));
  CHECK(values(Mish{}(x)) == values(mish(x)));
  CHECK(values(Softplus{}(x)) == values(softplus(x)));
  CHECK(values(Erf{}(x)) == values(quantrain::erf(x)));
  CHECK(values(SELU{}(x)) == values(selu(x)));
  CHECK(values(Power{1.5f}(x)) == values(power(x, 1.5f)));
  CHECK(values(Sqrt{}(x)) == values(quantrain::sqrt(x)));
  CHECK(values(Logarithm{}(x)) == values(quantrain::log(x)));
  CHECK(values(LeakyReLU{0.5f}(x)) == values(leaky_relu(x, 0.5f)));
  CHECK(values(ELU{0.5f}(x)) == values(elu(x, 0.5f)));
  CHECK(values(Exp{}(x)) == values(quantrain::exp(x)));
  CHECK(values(Square{}(x)) == values(square(x)));
  CHECK(values(Abs{}(x)) == values(quantrain::abs(x)));
  CHECK(values(Clamp{-1.5f, 3.0f}(x)) == values(clamp(x, -1.5f, 3.0f)));
  CHECK(GELU{}.type() == "GELU");
  CHECK(Clamp{0.0f, 1.0f}.type() == "Clamp");
}

TEST_CASE("Elementwise is a layer for any function, without a class for it",
          "[layers][activation]") {
  const auto twice = std::make_shared<const ElementwiseFunction>(
      ElementwiseFunction{.type = "twice",
                          .f = [](double v) { return 2.0 * v; },
                          .derivative = [](double) { return 2.0; }});
  Elementwise layer{twice};
  CHECK(layer.type() == "Elementwise");
  CHECK(values(layer(Tensor::from({2}, std::vector<float>{-1, 3}))) == std::vector<float>{-2, 6});
  QUANTRAIN_CHECK_ERROR(Elementwise{nullptr}, GraphError, "[Elementwise] the function is null");
}

TEST_CASE("prelu has a slope for each channel, or one for all", "[layers][activation]") {
  PReLU layer{2};
  CHECK(values(layer.weight()) == std::vector<float>{0.25f, 0.25f});
  set(layer.weight(), {0.5f, -1.0f});
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{-2, -2, 3, 0});
  CHECK(values(layer(x)) == std::vector<float>{-1, 2, 3, 0});
  CHECK(values(PReLU{1, 2.0f}(x)) == std::vector<float>{-4, -4, 3, 0});
  QUANTRAIN_CHECK_ERROR(layer(Tensor::zeros({1, 3})), ShapeError, "[PReLU] takes 2 channels: x");
  QUANTRAIN_CHECK_ERROR(PReLU{0}, ShapeError, "[PReLU] channels must be positive: 0");
  QUANTRAIN_CHECK_ERROR(PReLU(1, std::nanf("")), DataError, "[PReLU] slope is nan");
}

TEST_CASE("a batch norm and a prelu of existing tensors share them", "[layers]") {
  BatchNorm1d norm{2, {.epsilon = 0.5f}};
  BatchNorm1d again{
      norm.gamma(), norm.beta(), norm.running_mean(), norm.running_var(), norm.options()};
  CHECK(again.gamma().same_as(norm.gamma()));
  CHECK(again.epsilon() == 0.5f);
  CHECK(again.named_parameters()[0].name == "weight");
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 6});
  norm(x);  // moves the statistics of both
  norm.eval();
  again.eval();
  CHECK(values(again(x)) == values(norm(x)));
  CHECK(values(again.running_mean()) == std::vector<float>{0.2f, 0.4f});
  // Statistics of its own.
  BatchNorm1d own{norm.gamma(), norm.beta(), Tensor::zeros({2}), Tensor::full({2}, 1.0f)};
  CHECK(values(own.running_mean()) == std::vector<float>{0, 0});
  PReLU prelu{2};
  CHECK(PReLU{prelu.weight()}.weight().same_as(prelu.weight()));

  const Tensor two = Tensor::zeros({2}), three = Tensor::zeros({3});
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{two, two, three, two}),
                        ShapeError,
                        "[BatchNorm2d] gamma, beta, running mean and running variance are [C] of "
                        "the same C, got [3] beside [2]");
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{two, Tensor(), two, two}), ShapeError, "got none beside [2]");
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{Tensor::zeros({1, 2}), two, two, two}), ShapeError, "[1, 2]");
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{two, two, two, two, {.epsilon = 0.0f}}), DataError, "epsilon");
  QUANTRAIN_CHECK_ERROR(PReLU{Tensor()}, ShapeError, "[PReLU] the slopes are undefined");
  QUANTRAIN_CHECK_ERROR(PReLU{Tensor::zeros({1, 2})}, ShapeError, "[channels], got [1, 2]");
}

TEST_CASE("pooling takes the largest or the mean of each window", "[layers][pooling]") {
  const Tensor x = Tensor::from({1, 2, 2, 1}, std::vector<float>{1, 2, 3, 6});
  CHECK(MaxPool2d{2}(x).item() == 6.0f);
  CHECK(AvgPool2d{2}(x).item() == 3.0f);
  CHECK(GlobalAvgPool2d{}(x).shape() == Shape{1, 1, 1, 1});
  CHECK(GlobalAvgPool2d{}(x).item() == 3.0f);
  CHECK(GlobalMaxPool2d{}(x).item() == 6.0f);
  CHECK(GlobalMaxPool2d{}(Tensor::zeros({0, 3, 5, 2})).shape() == Shape{0, 1, 1, 2});
  QUANTRAIN_CHECK_ERROR(
      GlobalMaxPool2d{}(Tensor::zeros({1, 0, 5, 2})),
      ShapeError,
      "[global_max_pool2d] x is not [N, H, W, C] with H and W of at least 1: [1, 0, 5, 2]");
  CHECK(values(AvgPool2d{2, {.stride = 2, .padding = 1}}(x)) == std::vector<float>{1, 2, 3, 6});
  CHECK(MaxPool2d{{3, 1}, {.stride = 1, .padding = {1, 0}}}(Tensor::zeros({1, 5, 4, 2})).shape() ==
        Shape{1, 5, 4, 2});
}

TEST_CASE("Add adds its inputs, Flatten keeps the batch axis, and Sequential runs its layers",
          "[layers]") {
  const Tensor x = Tensor::from({2, 1, 2}, std::vector<float>{1, 2, 3, 4});
  CHECK(values(Add{}(x, x)) == std::vector<float>{2, 4, 6, 8});
  CHECK(values(Add{}(std::vector{x, x, x})[0]) == std::vector<float>{3, 6, 9, 12});
  CHECK(values(Add{}(std::vector{x})[0]) == std::vector<float>{1, 2, 3, 4});
  CHECK(Flatten{}(x).shape() == Shape{2, 2});
  Sequential net{Flatten{}, ReLU{}};
  CHECK(net(x).shape() == Shape{2, 2});
  CHECK(net.size() == 2);
}

TEST_CASE("dropout drops only in training, and the same elements for the same seed",
          "[layers][dropout]") {
  const Tensor x = Tensor::full({1000}, 1.0f);
  manual_seed(3);
  Dropout dropout{0.25f};
  const std::vector<float> first = values(dropout(x));
  const std::vector<float> second = values(dropout(x));
  int64_t dropped = 0;
  for (const float v : first) {
    CHECK((v == 0.0f || v == test::Approx(1.0 / 0.75)));
    dropped += v == 0.0f ? 1 : 0;
  }
  CHECK(dropped > 190);  // 250 expected, deviation 14
  CHECK(dropped < 310);
  CHECK(first != second);
  manual_seed(3);
  CHECK(values(Dropout{0.25f}(x)) == first);
  dropout.eval();
  CHECK(values(dropout(x)) == values(x));
}

TEST_CASE("the gradient of every layer matches finite differences", "[layers]") {
  manual_seed(4);
  Linear fc{5, 3};
  check_gradients(fc, random_tensor({2, 5}, 1));
  Conv2d conv{2, 4, {.kernel = 3, .stride = {2, 1}, .padding = 1, .groups = 2}};
  check_gradients(conv, random_tensor({2, 4, 5, 2}, 2));
  Conv1d signal{2, 4, {.kernel = 3, .stride = 2, .padding = 1, .groups = 2, .dilation = 2}};
  check_gradients(signal, random_tensor({2, 7, 2}, 2));
  MaxPool1d max_of_signals{3, {.stride = 2, .padding = 1}};
  check_gradients(max_of_signals, spread_tensor({1, 5, 2}, 7));
  AvgPool1d avg_of_signals{2, {.stride = 1, .padding = 1}};
  check_gradients(avg_of_signals, random_tensor({1, 4, 2}, 8));
  GlobalMaxPool1d global_max_of_signals;
  check_gradients(global_max_of_signals, spread_tensor({2, 5, 2}, 7));
  GlobalAvgPool1d global_of_signals;
  check_gradients(global_of_signals, random_tensor({2, 5, 2}, 9));
  Reshape reshaped{{3, -1}};
  check_gradients(reshaped, random_tensor({2, 2, 6}, 10));
  BatchNorm2d norm{3};
  set(norm.gamma(), {0.5f, 1.0f, -2.0f});
  set(norm.beta(), {1.0f, 0.0f, 0.5f});
  norm(random_tensor({4, 3, 3, 3}, 3));
  norm.eval();
  check_gradients(norm, random_tensor({2, 2, 2, 3}, 4));
  ReLU relu_layer;
  check_gradients(relu_layer, spread_tensor({3, 7}, 5));
  ReLU6 relu6_layer;
  check_gradients(relu6_layer, spread_tensor({200}, 6));
  Sigmoid sigmoid_layer;
  check_gradients(sigmoid_layer, random_tensor({3, 7}, 5));
  PReLU prelu_layer{7};
  check_gradients(prelu_layer, spread_tensor({3, 7}, 9));
  Tanh tanh_layer;
  check_gradients(tanh_layer, random_tensor({3, 7}, 5));
  MaxPool2d max_pool{3, {.stride = 2, .padding = 1}};
  check_gradients(max_pool, spread_tensor({1, 5, 5, 2}, 7));
  AvgPool2d avg_pool{2, {.stride = 1, .padding = 1}};
  check_gradients(avg_pool, random_tensor({1, 3, 4, 2}, 8));
  GlobalMaxPool2d global_max;
  check_gradients(global_max, spread_tensor({2, 3, 3, 2}, 7));
  GlobalAvgPool2d global;
  check_gradients(global, random_tensor({2, 3, 4, 2}, 9));
  Flatten flat;
  check_gradients(flat, random_tensor({2, 3, 2}, 10));
}

TEST_CASE("the gradient of batch norm in training matches finite differences",
          "[layers][batch_norm]") {
  BatchNorm2d norm{2};
  Tensor x = random_tensor({3, 2, 2, 2}, 11);
  x.set_requires_grad(true);
  const GradCheckResult result =
      grad_check([&] { return norm(x); }, {x, norm.gamma(), norm.beta()});
  INFO(result.worst);
  CHECK(result.ok);
}

TEST_CASE("the gradients of a residual sum reach both branches", "[layers][add]") {
  Add sum;
  Tensor a = random_tensor({2, 3}, 12);
  Tensor b = random_tensor({2, 3}, 13);
  a.set_requires_grad(true);
  b.set_requires_grad(true);
  CHECK(grad_check([&] { return sum(a, b); }, {a, b}).ok);
}

TEST_CASE("layers refuse invalid sizes and options", "[layers]") {
  QUANTRAIN_CHECK_ERROR(
      (Linear{0, 3}), ShapeError, "[Linear] features must be positive: in 0, out 3");
  QUANTRAIN_CHECK_ERROR(
      (Conv2d{1, -2}), ShapeError, "[Conv2d] channels must be positive: in 1, out -2");
  QUANTRAIN_CHECK_ERROR(
      (Conv2d{1, 2, {.kernel = 0}}), ShapeError, "[Conv2d] the kernel is below 1");
  QUANTRAIN_CHECK_ERROR((Conv2d{1, 2, {.stride = {1, 0}}}), ShapeError, "stride [1, 0]");
  QUANTRAIN_CHECK_ERROR((Conv2d{1, 2, {.padding = -1}}), ShapeError, "padding is negative");
  QUANTRAIN_CHECK_ERROR((Conv2d{4, 6, {.groups = 4}}),
                        ShapeError,
                        "groups 4 do not divide the channels: in 4, out 6");
  QUANTRAIN_CHECK_ERROR(
      (Conv2d{1, 2, {.dilation = {0, 1}}}), ShapeError, "[Conv2d] the dilation is below 1");
  QUANTRAIN_CHECK_ERROR(
      (Conv1d{1, -2}), ShapeError, "[Conv1d] channels must be positive: in 1, out -2");
  QUANTRAIN_CHECK_ERROR((Conv1d{1, 2, {.kernel = 0}}),
                        ShapeError,
                        "[Conv1d] the kernel is below 1: kernel 0, stride 1, padding 0");
  QUANTRAIN_CHECK_ERROR((Conv1d{1, 2, {.dilation = -1}}), ShapeError, "the dilation is below 1");
  QUANTRAIN_CHECK_ERROR((Conv1d{4, 6, {.groups = 4}}),
                        ShapeError,
                        "[Conv1d] groups 4 do not divide the channels: in 4, out 6");
  QUANTRAIN_CHECK_ERROR(MaxPool1d{0}, ShapeError, "[MaxPool1d] the kernel is below 1");
  QUANTRAIN_CHECK_ERROR((AvgPool1d{2, {.padding = 2}}),
                        ShapeError,
                        "[AvgPool1d] the padding is not below the kernel");
  QUANTRAIN_CHECK_ERROR(BatchNorm2d{0}, ShapeError, "channels must be positive: 0");
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{1, {.epsilon = 0.0f}}), DataError, "epsilon");
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{1, {.epsilon = std::numeric_limits<float>::infinity()}}),
                        DataError,
                        "epsilon must be positive and finite, and momentum in [0, 1]: epsilon inf");
  QUANTRAIN_CHECK_ERROR((BatchNorm2d{1, {.momentum = 1.5f}}), DataError, "momentum");
  QUANTRAIN_CHECK_ERROR(MaxPool2d{0}, ShapeError, "[MaxPool2d] the kernel is below 1");
  QUANTRAIN_CHECK_ERROR(
      (AvgPool2d{2, {.stride = -1}}), ShapeError, "[AvgPool2d] the stride is below 1");
  QUANTRAIN_CHECK_ERROR((MaxPool2d{2, {.padding = 2}}),
                        ShapeError,
                        "[MaxPool2d] the padding is not below the kernel");
  QUANTRAIN_CHECK_ERROR(Dropout{1.0f}, DataError, "[Dropout] p must be in [0, 1): 1");
  QUANTRAIN_CHECK_ERROR(Dropout{std::nanf("")}, DataError, "[Dropout] p must be");
}

TEST_CASE("the error about a wrong input names the layer's path and both shapes", "[layers]") {
  Sequential net;
  net.add("block", Sequential{Conv2d{3, 8}, Linear{8, 2}});
  QUANTRAIN_CHECK_ERROR(
      net(Tensor::zeros({1, 5, 5, 1})),
      ShapeError,
      "[Conv2d block.0] takes images [N, H, W, 3]: x [1, 5, 5, 1], weight [8, 3, 3, 3]");
  QUANTRAIN_CHECK_ERROR(net(Tensor::zeros({5, 5, 3})), ShapeError, "[Conv2d block.0]");
  QUANTRAIN_CHECK_ERROR(net.find("block.1")(Tensor::zeros({4, 7})),
                        ShapeError,
                        "takes 8 features: x [4, 7], weight [2, 8]");
  QUANTRAIN_CHECK_ERROR(Conv1d(3, 8)(Tensor::zeros({1, 5, 5, 3})),
                        ShapeError,
                        "[Conv1d] takes signals [N, L, 3]: x [1, 5, 5, 3], weight [8, 3, 3]");
  QUANTRAIN_CHECK_ERROR(
      Conv1d(3, 8)(Tensor::zeros({1, 5, 2})), ShapeError, "takes signals [N, L, 3]");
  QUANTRAIN_CHECK_ERROR(Conv1d(3, 8)(Tensor::zeros({1, 2, 3})),
                        ShapeError,
                        "[conv1d] the kernel is larger than the padded signal");
  QUANTRAIN_CHECK_ERROR(BatchNorm2d{4}(Tensor::zeros({1, 2, 2, 3})), ShapeError, "x [1, 2, 2, 3]");
  QUANTRAIN_CHECK_ERROR(BatchNorm1d{4}(Tensor::zeros({1, 2, 2, 4})),
                        ShapeError,
                        "[BatchNorm1d] takes rows [N, 4] or signals [N, L, 4]: x [1, 2, 2, 4]");
  QUANTRAIN_CHECK_ERROR(BatchNorm1d{0}, ShapeError, "[BatchNorm1d] channels must be positive: 0");
  QUANTRAIN_CHECK_ERROR(BatchNorm1d{4}(Tensor::zeros({1, 4})),
                        ShapeError,
                        "more than one value per channel, got shape [1, 4]: call eval()");
  QUANTRAIN_CHECK_ERROR(Add{}(Tensor::zeros({2}), Tensor::zeros({3})),
                        ShapeError,
                        "[Add] shapes differ: a [2], b [3]");
  QUANTRAIN_CHECK_ERROR(
      Add{}(std::vector{Tensor::zeros({2}), Tensor::zeros({2}), Tensor::zeros({3})}),
      ShapeError,
      "[Add] shapes differ: input 0 [2], input 2 [3]");
  QUANTRAIN_CHECK_ERROR(Add{}(std::vector<Tensor>{}), ShapeError, "[add] there is no operand");
  QUANTRAIN_CHECK_ERROR(MaxPool2d{3}(Tensor::zeros({1, 2, 2, 1})), ShapeError, "[1, 2, 2, 1]");
}

TEST_CASE("Mul takes inputs of equal shape, or a factor for each channel", "[layers][mul]") {
  const Tensor x = Tensor::full({2, 3, 5, 4}, 3.0f);
  const Tensor factors = Tensor::full({2, 1, 1, 4}, 0.5f);
  Mul mul;
  CHECK(mul(x, x).data()[0] == 9.0f);
  for (const Tensor& y : {mul(x, factors), mul(factors, x)}) {
    CHECK(y.shape() == x.shape());
    CHECK(y.data()[119] == 1.5f);
  }
  CHECK(mul(Tensor::zeros({2, 7}), Tensor::zeros({2, 7})).shape() == Shape{2, 7});
  for (const Shape& shape :
       {Shape{2, 1, 5, 4}, Shape{2, 1, 1, 1}, Shape{1, 1, 1, 4}, Shape{4}, Shape{2, 3, 5, 1}}) {
    CAPTURE(shape);
    QUANTRAIN_CHECK_ERROR(
        mul(x, Tensor::zeros(shape)),
        ShapeError,
        "[Mul] takes inputs of equal shape, or [N, ..., C] and [N, 1, ..., 1, C]: "
        "a [2, 3, 5, 4], b [");
  }
}

TEST_CASE("layers that move elements have the right shapes, and refuse invalid sizes",
          "[layers][moves]") {
  const Tensor x = Tensor::full({2, 3, 5, 4}, 1.0f);
  CHECK(Upsample{2}(x).shape() == Shape{2, 6, 10, 4});
  CHECK(Upsample{{3, 1}}(Tensor::zeros({2, 3, 5})).shape() == Shape{2, 9, 5});
  const Tensor padded = ZeroPad2d{{.left = 1, .right = 2, .top = 0, .bottom = 3}}(x);
  CHECK(padded.shape() == Shape{2, 6, 8, 4});
  CHECK(padded.data()[0] == 0.0f);
  CHECK(padded.data()[4] == 1.0f);
  CHECK(padded.data()[5 * 4 + 4] == 0.0f);
  CHECK(ZeroPad2d{1}(x).shape() == Shape{2, 5, 7, 4});
  CHECK(Slice{1, {.begin = 1}}(x).shape() == Shape{2, 2, 5, 4});
  CHECK(Slice{-1, {.step = -2}}(x).shape() == Shape{2, 3, 5, 2});
  QUANTRAIN_CHECK_ERROR(
      Upsample{0}, ShapeError, "[Upsample] scale is [0, 0], expected whole numbers");
  QUANTRAIN_CHECK_ERROR(
      (ZeroPad2d{{.top = -1}}),
      ShapeError,
      "[ZeroPad2d] padding of -1 is negative: use Slice to remove rows or columns");
  const Tensor longer = ZeroPad1d{{.left = 3, .right = 1}}(Tensor::full({2, 4, 3}, 1.0f));
  CHECK(longer.shape() == Shape{2, 8, 3});
  CHECK(values(longer)[8] == 0.0f);
  CHECK(values(longer)[9] == 1.0f);
  CHECK(values(longer)[20] == 1.0f);
  CHECK(values(longer)[21] == 0.0f);
  CHECK(ZeroPad1d{2}(Tensor::zeros({2, 4, 3})).shape() == Shape{2, 8, 3});
  QUANTRAIN_CHECK_ERROR((ZeroPad1d{{.right = -2}}),
                        ShapeError,
                        "[ZeroPad1d] padding of -2 is negative: use Slice to remove elements");
  QUANTRAIN_CHECK_ERROR(
      ZeroPad1d{1}(x), ShapeError, "[ZeroPad1d] x is not [N, L, C]: x [2, 3, 5, 4]");
  QUANTRAIN_CHECK_ERROR(ZeroPad2d{1}(Tensor::zeros({2, 3})),
                        ShapeError,
                        "[ZeroPad2d] x is not [N, H, W, C]: x [2, 3]");
  QUANTRAIN_CHECK_ERROR((Slice{0, {.begin = 1}}),
                        ShapeError,
                        "[Slice] axis 0 is the batch: a layer works on each sample");
  QUANTRAIN_CHECK_ERROR((Slice{-4, {.begin = 1}}(x)), ShapeError, "[Slice] axis -4 is the batch");
  QUANTRAIN_CHECK_ERROR((Slice{1, {.step = 0}}), ShapeError, "[Slice] the step is 0");
}

}  // namespace quantrain
